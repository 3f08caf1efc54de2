-- touch.lua: what a user is called or looks like has changed, so every board that shows the user has.
-- Its keys from KEYS[k]: for each board: version, then the members of each span that can be followed
-- Its arguments from ARGV[a]: channel of changes, then for each board: its id, number of spans
local function touch(k, a, user)
  for at = a + 1, #ARGV, 2 do
    local version, there = KEYS[k], false
    for span = 1, tonumber(ARGV[at + 1]) do
      there = there or redis.call('ZSCORE', KEYS[k + span], user)
    end
    if there then
      redis.call('INCR', version)
      redis.call('PUBLISH', ARGV[a], 'board ' .. ARGV[at] .. ' ' .. user)
    end
    k = k + 1 + tonumber(ARGV[at + 1])
  end
end
