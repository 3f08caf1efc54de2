-- online.lua: a page of who is online in one partition, seen last first. Follows position.lua.
-- KEYS  1 last-seen set
-- ARGV  1 seen before this (ms) is no longer online  2 last seen (ms) and 3 user of the row after which the page begins
--       (empty: none)  4 how many
-- Reply {who is online, rows before the page, {user, last seen, …}}
local set = KEYS[1]
local online, start = redis.call('ZCOUNT', set, ARGV[1], '+inf'), 0
-- From the end of the set: of those seen at the same time, larger ids come first.
if ARGV[2] ~= '' then start = redis.call('ZCARD', set) - place_before(set, ARGV[2], ARGV[3]) end
local last = math.min(online, start + tonumber(ARGV[4]))
local page = {}
if start < last then page = redis.call('ZRANGE', set, start, last - 1, 'REV', 'WITHSCORES') end
return { online, math.min(start, online), page }
