-- The credit of one caller of a rule: permits beside the limit.
--
--   KEYS[1]  string: how many are left; there is no key if none are
--   ARGV[1]  add, take (all or none), spend (as many as there are)
--   ARGV[2]  how many
--   ARGV[3]  the most that a caller may have
-- Answers how many were added or taken, and how many are left.
local amount, most = tonumber(ARGV[2]), tonumber(ARGV[3])
-- a key of another type is not ours
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'string' then redis.call('DEL', KEYS[1]) end
local left = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
if left ~= left or left < 0 or left > most then left = 0 end
left = math.floor(left)
local function text(number) return string.format('%.0f', number) end
local moved
if ARGV[1] == 'add' then
  moved = left + amount > most and 0 or amount
  left = left + moved
elseif ARGV[1] == 'take' then
  moved = left < amount and 0 or amount
  left = left - moved
else
  moved = math.min(left, amount)
  left = left - moved
end
if moved > 0 then
  if left > 0 then
    redis.call('SET', KEYS[1], text(left))
  else
    redis.call('DEL', KEYS[1])
  end
end
return { text(moved), text(left) }
