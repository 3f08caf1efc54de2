-- make_up.lua: a user makes up a missed day. Follows mutation.lua, day.lua, board.lua, window.lua
-- and score.lua.
-- What it comes to was computed outside from what was read before; it is only written if that still stands.
-- KEYS  1-3 see mutation.lua  4 bucket of records  5 year's segment  6 segment of its make-ups  7… that day's bitmap and
--       its counter, if they are kept; then each fed board, see score.lua
-- ARGV  1-6 see mutation.lua  7 record as read  8 record after  9 bit within the year's segment  10 last bit of a year's
--       segment  11 TTL of the year (s)  12 row  13 TTL of the day (s; empty: its bitmap is not
--       kept)  14 the number of fed boards, and for each: points to add, and see score.lua
-- Reply the answer is 'MADE_UP' or 'CHANGED' (the record is another by now: read again). Or the error STALEDAY: a fed
--       board's windows are of another day.
if redis.call('HGET', KEYS[4], ARGV[3]) ~= ARGV[7] then return done(false, 'CHANGED') end

-- The boards' windows must be of today before anything is written.
local boards = {}
local key, at = ARGV[13] == '' and 7 or 9, 15
for i = 1, tonumber(ARGV[14]) do
  boards[i] = { amount = tonumber(ARGV[at]), key = key, at = at + 1 }
  if not same_day(key, at + 1) then return redis.error_reply('STALEDAY another day is in force') end
  key, at = after_board(key, at + 1)
end

for segment = 5, 6 do mark_year(KEYS[segment], ARGV[9], ARGV[10], ARGV[11]) end
if ARGV[13] ~= '' then mark_day(KEYS[7], KEYS[8], tonumber(ARGV[12]), ARGV[13]) end
for _, board in ipairs(boards) do score(board.key, board.at, ARGV[4], 'INCREMENT', board.amount, true) end
redis.call('HSET', KEYS[4], ARGV[3], ARGV[8])
return done(true, 'MADE_UP')
