-- numbers.lua: numbers as text, exactly. Lua's own way ('%.14g') and cjson lose digits beyond 14 places.

-- A whole number up to 2^53; zero loses its sign.
local function whole(n)
  if n == 0 then return '0' end
  return string.format('%.0f', n)
end

-- Any number: whole ones without a fraction, others with the 17 digits that a double needs.
local function text(n)
  if n == math.floor(n) and n > -2 ^ 53 and n < 2 ^ 53 then return whole(n) end
  return string.format('%.17g', n)
end
