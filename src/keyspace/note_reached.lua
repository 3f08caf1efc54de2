-- note_reached.lua: notes how far upkeep has come.
-- KEYS  1 generation  2 how far it has come
-- ARGV  1 expected generation  2 with what  3 up to which date
-- Reply 1. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return 1
