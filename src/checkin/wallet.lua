-- wallet.lua: a backend pays into a user's wallet, or takes out of it. Follows mutation.lua in the same scope.
-- KEYS  1-3 see mutation.lua  4 bucket of records
-- ARGV  1-6 see mutation.lua  7 points to add, negative: to take  8 cards to add  9 most points held  10 most cards held
-- Reply the answer is 'APPLIED', 'INSUFFICIENT' (less is there than is to be taken; nothing changed) or 'FULL' (more
--       would be held than can be; nothing changed), and points and cards held after it.
local record = redis.call('HGET', KEYS[4], ARGV[3]) or '0 0 0 0 0 0 0 0 0'
-- The numbers before and after those of the wallet are check_in.lua's.
local check_ins, points, cards, rest = string.match(record, '^(%S+ %S+ %S+ %S+ %S+ %S+ %S+) (%S+) (%S+)(.*)$')
local points_after, cards_after = tonumber(points) + tonumber(ARGV[7]), tonumber(cards) + tonumber(ARGV[8])
local held = ' ' .. points .. ' ' .. cards
if points_after < 0 then return done(false, 'INSUFFICIENT' .. held) end
if points_after > tonumber(ARGV[9]) or cards_after > tonumber(ARGV[10]) then return done(false, 'FULL' .. held) end
held = ' ' .. whole(points_after) .. ' ' .. whole(cards_after)
redis.call('HSET', KEYS[4], ARGV[3], check_ins .. held .. rest)
return done(true, 'APPLIED' .. held)
