-- A rule's hash is a ring: a minute of the day, and in it which minute that was, what it allowed and what it refused.
local minute = math.floor(redis.call('TIME')[1] / 60)
local field = minute % KEPT_MINUTES
for k = 1, #KEYS do
  local allowed, refused = ARGV[k * 2 - 1], ARGV[k * 2]
  local known, before, after = (redis.call('HGET', KEYS[k], field) or ''):match('^(%d+) (%d+) (%d+)$')
  if tonumber(known) == minute then allowed, refused = allowed + before, refused + after end
  redis.call('HSET', KEYS[k], field, string.format('%.0f %.0f %.0f', minute, allowed, refused))
  redis.call('EXPIRE', KEYS[k], KEPT_MINUTES * 60)
end
