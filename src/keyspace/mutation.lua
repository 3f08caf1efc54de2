-- mutation.lua: what every writing script opens with, after numbers.lua; the script itself follows in the same scope.
-- KEYS  1 generation  2 bucket of row -> user  3 memory of this operation
-- ARGV  1 expected generation  2 events seen  3 row within the bucket  4 user
--       5 how KEYS[3] remembers: 'operation' (the answer), 'place' (an import's last place), 'none' (the script may be
--         run twice as it is)
--       6 for an operation: for how long (ms), now (ms), digest of the arguments ('-': the server made the operation, no
--         other call can bear its name), this call; for a place: this one
-- Reply {'DONE', events counted, answer}, also when the same call comes again; {'REPLAYED', events counted, answer as first given, when it was (ms)};
--       {'CONFLICT', events counted, ''} when the same operation came with other arguments. Or the errors STALE (the data
--       is not what the caller has seen), NOROW (the row bears another name: ask for the row anew), GAP (the place before
--       this one is missing). (Redis takes the first word of an error for its code only if more words follow.)
local state = redis.call('HMGET', KEYS[1], 'id', 'events')
local events = tonumber(state[2] or -1)
if state[1] ~= ARGV[1] or events < tonumber(ARGV[2]) then
  return redis.error_reply('STALE generation or event count')
end
if redis.call('HGET', KEYS[2], ARGV[3]) ~= ARGV[4] then return redis.error_reply('NOROW the row bears another name') end
local kept_ms, now_ms, arguments, this_call
if ARGV[5] == 'operation' then
  kept_ms, now_ms, arguments, this_call = string.match(ARGV[6], '^(%d+) (%-?%d+) (%S+) (%S+)$')
  local remembered = redis.call('GET', KEYS[3])
  if remembered then
    local at, digest, call, final, answer = string.match(remembered, '^(%-?%d+) (%S+) (%S+) (%d) (.*)$')
    -- Whether it still counts is the clock's to say; the key's TTL only clears it away some time later.
    if tonumber(now_ms) - tonumber(at) < tonumber(kept_ms) then
      -- Our own sending again must find what it found, or it would overtake what the same batch did after it.
      if call == this_call then return { 'DONE', events, answer } end
      if final == '1' then
        if digest ~= arguments then return { 'CONFLICT', events, '' } end
        return { 'REPLAYED', events, answer, tonumber(at) }
      end
    end
  end
elseif ARGV[5] == 'place' then
  local place, this = tonumber(redis.call('GET', KEYS[3]) or 0), tonumber(ARGV[6])
  if place >= this then return { 'REPLAYED', events, '', 0 } end
  if place ~= this - 1 then return redis.error_reply('GAP the place before this one is missing') end
end

-- Ends the script. What changed something counts as an event. Every answer is remembered for the same call; for another
-- one under the same key only if something changed or nothing could have (`final`): otherwise asking again may find
-- another state.
local function done(changed, answer, final)
  if ARGV[5] == 'place' then redis.call('SET', KEYS[3], ARGV[6]) end
  if changed then events = redis.call('HINCRBY', KEYS[1], 'events', 1) end
  if ARGV[5] == 'operation' then
    local lasting = changed or final
    local ttl = lasting and whole(math.ceil(tonumber(kept_ms) * 25 / 24)) or '120000'
    local memory = { now_ms, arguments, this_call, lasting and '1' or '0', answer }
    redis.call('SET', KEYS[3], table.concat(memory, ' '), 'PX', ttl)
  end
  return { 'DONE', events, answer }
end
