-- submit_score.lua: a user scores on one board. Follows mutation.lua, board.lua, window.lua and score.lua.
-- KEYS  1-3 see mutation.lua  4… see score.lua
-- ARGV  1-6 see mutation.lua  7 operator  8 points  9… see score.lua
-- Reply the answer is 'REJECTED', or 'APPLIED' or 'UNCHANGED' followed by, for each period, its name, points before
--       ('-': was not there), key, members before, members with better points, distinct better points, participants.
--       Or the error STALEDAY: the windows are of another day.
if not same_day(4, 9) then return redis.error_reply('STALEDAY another day is in force') end
local changed, standings = score(4, 9, ARGV[4], ARGV[7], tonumber(ARGV[8]), false)
if changed == nil then return done(false, 'REJECTED') end
table.insert(standings, 1, changed and 'APPLIED' or 'UNCHANGED')
return done(changed, table.concat(standings, ' '), true)
