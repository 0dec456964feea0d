local minute, reply = math.floor(redis.call('TIME')[1] / 60), {}
for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
  local known, allowed, refused = value:match('^(%d+) (%d+) (%d+)$')
  if known and tonumber(known) > minute - ARGV[1] then
    for _, number in ipairs({ known, allowed, refused }) do reply[#reply + 1] = tonumber(number) end
  end
end
return reply
