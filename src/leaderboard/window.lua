-- window.lua: what a user holds over several days. Follows board.lua in the same scope.

-- The key of `user` over days[first..last] (sets of keys with `range`), or nil where it stands on none of them: the sum
-- for INCREMENT, the best (smallest key) for BEST.
local function over_days(days, first, last, user, range, operator)
  local total
  for i = first, last do
    local held = redis.call('ZSCORE', days[i], user)
    if held then
      local key = group_of(tonumber(held), range)
      if not total then
        total = key
      elseif operator == 'INCREMENT' then
        total = total + key
      else
        total = math.min(total, key)
      end
    end
  end
  return total
end

-- Puts `user` where its days say, or takes it off where they say nothing.
local function put_over_days(members, distinct, user, key)
  if not key then return take_off(members, distinct, user, 1) end
  local held = tonumber(redis.call('ZSCORE', members, user) or nil)
  if held ~= key then put(members, distinct, user, 1, held, key) end
end
