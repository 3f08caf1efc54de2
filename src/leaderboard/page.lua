-- page.lua: one partition's best, with what they belong to, as of one moment.
-- KEYS  1 version  2 members
-- ARGV  1 how many
-- Reply {version, participants, {user, key, user, key, …}}
local many = tonumber(ARGV[1])
local best = {}
if many > 0 then best = redis.call('ZRANGE', KEYS[2], 0, many - 1, 'WITHSCORES') end
return { tonumber(redis.call('GET', KEYS[1]) or 0), redis.call('ZCARD', KEYS[2]), best }
