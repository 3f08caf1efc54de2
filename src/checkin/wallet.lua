-- wallet.lua: a backend pays into a user's wallet, or takes out of it. Follows mutation.lua and record.lua in the same
-- scope.
-- KEYS  1-3 see mutation.lua  4 bucket of records
-- ARGV  1-6 see mutation.lua  7 points to add, negative: to take  8 cards to add  9 most points held  10 most cards held
-- Reply the answer is 'APPLIED', 'INSUFFICIENT' (less is there than is to be taken; nothing changed) or 'FULL' (more
--       would be held than can be; nothing changed), and points and cards held after it.
local record = read_record(redis.call('HGET', KEYS[4], ARGV[3]))
local points, cards = record.points + tonumber(ARGV[7]), record.cards + tonumber(ARGV[8])
local held = ' ' .. whole(record.points) .. ' ' .. whole(record.cards)
if points < 0 then return done(false, 'INSUFFICIENT' .. held) end
if points > tonumber(ARGV[9]) or cards > tonumber(ARGV[10]) then return done(false, 'FULL' .. held) end
record.points, record.cards = points, cards
redis.call('HSET', KEYS[4], ARGV[3], write_record(record))
return done(true, 'APPLIED ' .. whole(points) .. ' ' .. whole(cards))
