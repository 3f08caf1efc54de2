-- check_in.lua: a user checks in for today. Follows mutation.lua, day.lua, record.lua, board.lua,
-- window.lua and score.lua.
-- KEYS  1-3 see mutation.lua  4 bucket of records  5 year's segment  6 day's bitmap  7 day's counter
--       8 activity bitmap  9 activity counter  10… each fed board, see score.lua
-- ARGV  1-6 see mutation.lua  7 today (days since 1970)  8 the day before by the calendar  9 bit within the year's
--       segment  10 last bit of a year's segment  11 row  12 TTL of the year (s)  13 TTL of the
--       day (s)  14 when a run that is to be remembered ended at the earliest  15 the days where kept years are cut off
--       (days since 1970, separated by spaces; see ended.rs)  16 most points held  17 most cards held  18 weekly bonus
--       19 days of the cycle  20… points of each
--       then the number of milestones and for each: streak, points, cards  then the number of fed boards and for each:
--       'points' or 'count', and see score.lua
-- Reply the answer is 'CHECKED_IN' or 'ALREADY_CHECKED_IN' and the record as stored.rs says. Or the error STALEDAY: a fed
--       board's windows are of another day.
local today = tonumber(ARGV[7])
local stored = redis.call('HGET', KEYS[4], ARGV[3])
local record = read_record(stored)
local known = record.total > 0

-- Another node's clock may already be a day ahead: that day's check-in is the newest, and this one adds nothing to it.
if known and record.last >= today then return done(false, 'ALREADY_CHECKED_IN ' .. stored) end

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

-- Those of `runs` (last day and length of each) that have to be remembered; see Horizon::keeps.
local function remembered(runs)
  local kept = ''
  for last, run in string.gmatch(runs, '(%S+) (%S+)') do
    local ends, began, cut_off = tonumber(last), tonumber(last) - tonumber(run), false
    for cut in string.gmatch(ARGV[15], '%S+') do
      cut_off = cut_off or began <= tonumber(cut) and tonumber(cut) <= ends
    end
    if cut_off and ends >= tonumber(ARGV[14]) then kept = kept .. ' ' .. last .. ' ' .. run end
  end
  return kept
end

local goes_on = known and record.last == tonumber(ARGV[8])
if known and not goes_on then record.ended = record.ended .. ' ' .. whole(record.last) .. ' ' .. whole(record.run) end
if record.ended ~= '' then record.ended = remembered(record.ended) end
if not known then record.first = today end
record.last, record.run, record.total = today, goes_on and record.run + 1 or 1, record.total + 1
record.longest = math.max(record.longest, record.run)

local cycle = tonumber(ARGV[19])
local paid, paid_cards = tonumber(ARGV[20 + (record.run - 1) % cycle]), 0
if record.run % 7 == 0 then paid = paid + tonumber(ARGV[18]) end
for milestone = 21 + cycle, 18 + cycle + 3 * tonumber(ARGV[20 + cycle]), 3 do
  if tonumber(ARGV[milestone]) == record.run then
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
record.paid, record.paid_cards = paid, paid_cards
record.points = math.min(record.points + paid, tonumber(ARGV[16]))
record.cards = math.min(record.cards + paid_cards, tonumber(ARGV[17]))
stored = write_record(record)
redis.call('HSET', KEYS[4], ARGV[3], stored)
return done(true, 'CHECKED_IN ' .. stored)
