-- page.lua: a page of one partition's members, with what it belongs to, as of one moment.
-- Follows numbers.lua, board.lua and position.lua.
-- KEYS  1 version  2 members  3 distinct  4 day in force, for windows only
-- ARGV  1 range  2 'first' or 'last'  3 how many  4 smallest and 5 largest key of interest ('-inf', '+inf': all)
--       6 key and 7 user of the position at or after which the page begins (empty: none)  8 and 9 of the one before which
--       it ends (empty: none)  10 the caller's day, for windows only  11 'at' or 'after', for 6 and 7
-- Reply {version, participants, members of interest, those of interest before the page's bounds, members within the
--       bounds, members before the bounds, {user, key, …}, members with better points than the page's first, distinct
--       better points than the page's first}. Or the error STALEDAY.
if KEYS[4] and redis.call('GET', KEYS[4]) ~= ARGV[10] then return redis.error_reply('STALEDAY another day is in force') end
local members, range, many = KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[3])
local low = ARGV[4] == '-inf' and 0 or redis.call('ZCOUNT', members, '-inf', '(' .. ARGV[4])
local high = redis.call('ZCOUNT', members, '-inf', ARGV[5])
high = math.max(low, high)
local from, to = low, high
if ARGV[6] ~= '' then
  local place = ARGV[11] == 'at' and place_before or place_after
  from = math.max(low, math.min(high, place(members, ARGV[6], ARGV[7])))
end
if ARGV[8] ~= '' then to = math.max(from, math.min(high, place_before(members, ARGV[8], ARGV[9]))) end

local first, last = from, math.min(to, from + many)
if ARGV[2] == 'last' then first, last = math.max(from, to - many), to end
local page = {}
if first < last then page = redis.call('ZRANGE', members, first, last - 1, 'WITHSCORES') end
local better, distinct = 0, 0
if first > 0 and page[2] then
  local group = group_of(tonumber(page[2]), range)
  better = redis.call('ZCOUNT', members, '-inf', '(' .. keys_of(group, range))
  distinct = redis.call('ZCOUNT', KEYS[3], '-inf', '(' .. text(group))
end
return {
  tonumber(redis.call('GET', KEYS[1]) or 0), redis.call('ZCARD', members), high - low, from - low, to - from, from,
  page, better, distinct,
}
