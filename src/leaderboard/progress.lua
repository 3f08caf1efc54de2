-- progress.lua: how far the sets of windows are built, told from the day in force, 'day number lengths,…': the lengths are
-- of the windows that every write keeps up.

-- Whether the window of `length` days is kept up under `in_force`.
local function kept_up(in_force, length)
  return string.find(',' .. string.gsub(in_force, '^%S+ ', '') .. ',', ',' .. length .. ',', 1, true) ~= nil
end

-- Under what the set of a window is built. Of a window that is not kept up yet, what was built is of use only as long as
-- nobody changes the board.
local function built_under(in_force, length, version)
  if kept_up(in_force, length) then return 'kept up' end
  return in_force .. ' ' .. (redis.call('GET', version) or '0')
end
