-- combine.lua: several bitmaps of one segment as one. Follows nothing.
-- KEYS  1 generation  2 temporary  3… bitmaps
-- ARGV  1 expected generation  2 'ANY' (bits set in at least one) or 'EVERY' (in all)  3 TTL of the temporary key (s)
--       4 what to answer: 'COUNT', 'BYTES', or 'AMONG' with 5… the bits to look at
-- Reply how many bits are set (of those to look at), or the bytes. Or the error STALE.
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return redis.error_reply('STALE generation') end
local every, maps = ARGV[2] == 'EVERY', {}
for i = 3, #KEYS do
  local length = redis.call('STRLEN', KEYS[i])
  if length > 0 then
    maps[#maps + 1] = { key = KEYS[i], length = length }
  elseif every then
    maps = {}
    break
  end
end

local function answer(key)
  if ARGV[4] == 'COUNT' then return key and redis.call('BITCOUNT', key) or 0 end
  if ARGV[4] == 'BYTES' then return key and redis.call('GET', key) or '' end
  local looks, set = {}, 0
  if not key then return 0 end
  for i = 5, #ARGV do
    looks[#looks + 1] = 'GET'
    looks[#looks + 1] = 'u1'
    looks[#looks + 1] = ARGV[i]
  end
  for _, bit in ipairs(redis.call('BITFIELD_RO', key, unpack(looks))) do set = set + bit end
  return set
end

if #maps < 2 then return answer(maps[1] and maps[1].key) end
-- BITOP is fast for at most 16 keys, as far as the shortest of them reaches. In the order of their lengths what lies beyond
-- is walked slowly once in all, and not once for each group.
table.sort(maps, function(one, other) return one.length < other.length end)
local next = 1
repeat
  local group = next > 1 and { KEYS[2] } or {}
  while #group < 16 and maps[next] do
    group[#group + 1] = maps[next].key
    next = next + 1
  end
  redis.call('BITOP', every and 'AND' or 'OR', KEYS[2], unpack(group))
  redis.call('EXPIRE', KEYS[2], ARGV[3]) -- each BITOP makes the key anew
until not maps[next]
local combined = answer(KEYS[2])
redis.call('UNLINK', KEYS[2])
return combined
