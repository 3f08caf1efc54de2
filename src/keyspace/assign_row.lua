-- assign_row.lua: gives a new user the partition's next row.
-- The caller cannot know the next row for sure, so it names the bucket it expects and the one after.
-- KEYS  1 generation  2 bucket of user -> row  3 bucket of row -> user, as expected  4 the bucket after
-- ARGV  1 expected generation  2 events seen  3 user  4 first row of KEYS[3]  5 rows a bucket
-- Reply {row, next row}; row is nil when the next row lies in neither bucket: ask again with what comes back as next.
--       Or the error STALE.
local state = redis.call('HMGET', KEYS[1], 'id', 'events', 'rows')
if state[1] ~= ARGV[1] or tonumber(state[2] or -1) < tonumber(ARGV[2]) then
  return redis.error_reply('STALE generation or event count')
end
local next = tonumber(state[3] or 0)
local known = redis.call('HGET', KEYS[2], ARGV[3])
if known then return { tonumber(known), next } end
local size = tonumber(ARGV[5])
local bucket = math.floor((next - tonumber(ARGV[4])) / size)
if bucket ~= 0 and bucket ~= 1 then return { false, next } end
redis.call('HSET', KEYS[2], ARGV[3], string.format('%.0f', next))
redis.call('HSET', KEYS[3 + bucket], string.format('%.0f', next % size), ARGV[3])
redis.call('HSET', KEYS[1], 'rows', string.format('%.0f', next + 1))
return { next, next + 1 }
