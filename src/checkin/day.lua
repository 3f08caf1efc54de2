-- day.lua: a user's bits: in a day's bitmap, and in a year's segment. Follows mutation.lua in the same scope.

local ROWS_A_BITMAP = 1048576 -- DAY_ROWS of rows.rs, where a test holds the two together

-- Sets the bit of the user with this row; whether it is new. The TTL is set once, when the bitmap is made.
local function mark_bit(bitmap, row, ttl)
  local bit = row % ROWS_A_BITMAP
  local there = redis.call('EXISTS', bitmap) == 1
  if not there then
    -- Sized at once for everybody, and some newcomers meanwhile: growing by itself, a string doubles.
    local rows = tonumber(redis.call('HGET', KEYS[1], 'rows') or 0)
    local size = math.max(math.floor(rows * 33 / 32) - (row - bit), bit + 1)
    redis.call('SETBIT', bitmap, whole(math.min(size, ROWS_A_BITMAP) - 1), 0)
  end
  local new = redis.call('SETBIT', bitmap, whole(bit), 1) == 0
  if not there then redis.call('EXPIRE', bitmap, ttl) end
  return new
end

-- Sets the bit of the user with this row in a day's bitmap, and counts it if it is new; whether it is. When a day's keys
-- leave depends on its date alone, so their TTL is set once.
local function mark_day(bitmap, counter, row, ttl)
  local new = mark_bit(bitmap, row, ttl)
  if new and redis.call('INCR', counter) == 1 then redis.call('EXPIRE', counter, ttl) end
  return new
end

-- Sets a bit in a segment of a year whose last bit is `last`. How many years are kept may have been changed, so its TTL is
-- set each time.
local function mark_year(segment, bit, last, ttl)
  local there = redis.call('EXPIRE', segment, ttl) == 1
  if not there then redis.call('SETBIT', segment, last, 0) end
  redis.call('SETBIT', segment, bit, 1)
  if not there then redis.call('EXPIRE', segment, ttl) end
end
