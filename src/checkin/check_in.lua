-- check_in.lua: a user checks in for today. Follows mutation.lua, day.lua, board.lua, window.lua and
-- score.lua.
-- KEYS  1-3 see mutation.lua  4 bucket of records  5 year's segment  6 day's bitmap  7 day's counter
--       8 activity bitmap  9 activity counter  10… each fed board, see score.lua
-- ARGV  1-6 see mutation.lua  7 today (days since 1970)  8 the day before by the calendar  9 bit within the year's
--       segment  10 last bit of a year's segment  11 row  12 TTL of the year (s)  13 TTL of the
--       day (s)  14 by when a run began that outlives its bits  15 when it ended at the earliest (both days since 1970)
--       16 most points held  17 most cards held  18 weekly bonus  19 days of the cycle  20… points of each
--       then the number of milestones and for each: streak, points, cards  then the number of fed boards and for each:
--       'points' or 'count', and see score.lua
-- Reply the answer is 'CHECKED_IN' or 'ALREADY_CHECKED_IN' and the record: first (0 or negative: days from last), last,
--       run, longest, total (0: no check-in yet, and the numbers before mean nothing), points and cards paid for last,
--       points and cards held, and, if a make-up may need it, last day and length of a run that ended (record.rs). Or the
--       error STALEDAY: a fed board's windows are of another day.
local today = tonumber(ARGV[7])
local record = redis.call('HGET', KEYS[4], ARGV[3])
local first, last, run, longest, total, points, cards, ended, ended_run = today, nil, 0, 0, 0, 0, 0, nil, nil
if record then
  local held = { string.match(record, '^(%S+) (%S+) (%S+) (%S+) (%S+) %S+ %S+ (%S+) (%S+) ?(%S*) ?(%S*)$') }
  points, cards = tonumber(held[6]), tonumber(held[7])
  if held[5] ~= '0' then
    first, last, run = tonumber(held[1]), tonumber(held[2]), tonumber(held[3])
    longest, total, ended, ended_run = tonumber(held[4]), tonumber(held[5]), tonumber(held[8]), tonumber(held[9])
    if first <= 0 then first = last + first end
  end
end

-- Another node's clock may already be a day ahead: that day's check-in is the newest, and this one adds nothing to it.
if last and last >= today then return done(false, 'ALREADY_CHECKED_IN ' .. record) end

-- The boards to feed stand at the end; their windows must be of today before anything is written.
local boards = {}
local at, key = 21 + tonumber(ARGV[19]), 10
at = at + 3 * tonumber(ARGV[at - 1])
for i = 1, tonumber(ARGV[at]) do
  local board = { what = ARGV[at + 1], key = key, at = at + 2 }
  if not same_day(board.key, board.at) then return redis.error_reply('STALEDAY another day is in force') end
  boards[i] = board
  key, at = after_board(board.key, board.at)
  at = at - 1
end

local goes_on = last == tonumber(ARGV[8])
if last and not goes_on and last - run < tonumber(ARGV[14]) then ended, ended_run = last, run end
if ended and ended < tonumber(ARGV[15]) then ended = nil end
run = goes_on and run + 1 or 1
longest = math.max(longest, run)
total = total + 1

local cycle = tonumber(ARGV[19])
local paid, paid_cards = tonumber(ARGV[20 + (run - 1) % cycle]), 0
if run % 7 == 0 then paid = paid + tonumber(ARGV[18]) end
for milestone = 21 + cycle, 18 + cycle + 3 * tonumber(ARGV[20 + cycle]), 3 do
  if tonumber(ARGV[milestone]) == run then
    paid = paid + tonumber(ARGV[milestone + 1])
    paid_cards = paid_cards + tonumber(ARGV[milestone + 2])
  end
end

mark_year(KEYS[5], ARGV[9], ARGV[10], ARGV[12])
for bitmap = 6, 8, 2 do mark_day(KEYS[bitmap], KEYS[bitmap + 1], tonumber(ARGV[11]), ARGV[13]) end

for _, board in ipairs(boards) do
  score(board.key, board.at, ARGV[4], 'INCREMENT', board.what == 'points' and paid or 1, true)
end

-- A wallet that is full to the last point takes no more; a check-in is never refused for it.
points, cards = math.min(points + paid, tonumber(ARGV[16])), math.min(cards + paid_cards, tonumber(ARGV[17]))
record = string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f', first - today, today, run, longest, total, paid,
  paid_cards, points, cards)
if ended then record = record .. string.format(' %.0f %.0f', ended, ended_run) end
redis.call('HSET', KEYS[4], ARGV[3], record)
return done(true, 'CHECKED_IN ' .. record)
