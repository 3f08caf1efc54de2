-- position.lua: where a position (key, user) lies in a set. The key is given as text.

-- Whether one id stands before another: by bytes, as sorted sets order members. Lua's own `<` goes by the locale that
-- Redis was started in.
local function id_before(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- How many members stand before (key, user). Among members of the very same key those with smaller ids stand before:
-- found by bisecting, not by scanning.
local function place_before(members, key, user)
  local low = redis.call('ZCOUNT', members, '-inf', '(' .. key)
  local high = low + redis.call('ZCOUNT', members, key, key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if id_before(redis.call('ZRANGE', members, middle, middle)[1], user) then low = middle + 1 else high = middle end
  end
  return low
end

-- How many members stand before or at (key, user).
local function place_after(members, key, user)
  local place = place_before(members, key, user)
  local there = redis.call('ZRANGE', members, place, place, 'WITHSCORES')
  if there[1] == user and tonumber(there[2]) == tonumber(key) then return place + 1 end
  return place
end
