-- record.lua: a user's record, check-ins and wallet, as it is stored. stored.rs says what the numbers mean, and reads and
-- writes the same.

-- A table of numbers by name; of a user without a record, with a total of 0. `first` is a date there; the runs that are
-- over and remembered stay text: last day and length of each, oldest first.
local function read_record(text)
  local first, last, run, longest, total, paid, paid_cards, points, cards, ended =
    string.match(text or '0 0 0 0 0 0 0 0 0', '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)(.*)$')
  first, last = tonumber(first), tonumber(last)
  if first <= 0 then first = last + first end
  return { first = first, last = last, run = tonumber(run), longest = tonumber(longest), total = tonumber(total),
    paid = tonumber(paid), paid_cards = tonumber(paid_cards), points = tonumber(points), cards = tonumber(cards),
    ended = ended }
end

local function write_record(r)
  return string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f', r.first - r.last, r.last, r.run, r.longest, r.total,
    r.paid, r.paid_cards, r.points, r.cards) .. r.ended
end
