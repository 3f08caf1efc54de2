-- mutation.lua: what every writing script opens with; the script itself follows in the same scope.
-- KEYS  1 generation  2 bucket of row -> user  3 memory of this operation
-- ARGV  1 expected generation  2 events seen  3 row within the bucket  4 user
--       5 how KEYS[3] remembers: 'operation' (the answer, for ARGV[6] ms), 'place' (an import's last place; this is
--         ARGV[6]), 'none' (the script may be run twice as it is)
--       6 see 5
-- Reply {'DONE' or 'REPLAYED', events counted, answer}, or the errors STALE (the data is not what the caller has seen),
--       NOROW (the row bears another name: ask for the row anew), GAP (the place before this one is missing).
-- (Redis takes the first word of an error for its code only if more words follow.)
local state = redis.call('HMGET', KEYS[1], 'id', 'events')
local events = tonumber(state[2] or -1)
if state[1] ~= ARGV[1] or events < tonumber(ARGV[2]) then
  return redis.error_reply('STALE generation or event count')
end
if redis.call('HGET', KEYS[2], ARGV[3]) ~= ARGV[4] then return redis.error_reply('NOROW the row bears another name') end
if ARGV[5] == 'operation' then
  local remembered = redis.call('GET', KEYS[3])
  if remembered then return { 'REPLAYED', events, remembered } end
elseif ARGV[5] == 'place' then
  local place, this = tonumber(redis.call('GET', KEYS[3]) or 0), tonumber(ARGV[6])
  if place >= this then return { 'REPLAYED', events, '' } end
  if place ~= this - 1 then return redis.error_reply('GAP the place before this one is missing') end
end

-- A whole number as text, exact up to 2^53 ('%.14g', Lua's own way, is not); zero loses its sign.
local function whole(n)
  if n == 0 then return '0' end
  return string.format('%.0f', n)
end

-- Ends the script: an answer that changed something counts as an event and is remembered, one that changed nothing is
-- neither, since asking again may find another state.
local function done(changed, answer)
  if ARGV[5] == 'place' then redis.call('SET', KEYS[3], ARGV[6]) end
  if changed then
    events = redis.call('HINCRBY', KEYS[1], 'events', 1)
    if ARGV[5] == 'operation' then redis.call('SET', KEYS[3], answer, 'PX', ARGV[6]) end
  end
  return { 'DONE', events, answer }
end
