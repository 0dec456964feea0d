/**
 * The fast path of the script for a single call: every rule has one level, and
 * every caller passes at once and is, if known at all, in the current hash, in the version in force, no longer than the hash does
 * anyway. In any other case nothing has been written yet, and the rest of the script handles the call as a batch.
 */
export const SINGLE_CALL = `
local singleCall = request.singleCall
if singleCall then
  local rules, texts, abouts = request.rules, {}, {}
  for c = 1, request.createdAt and #rules or 0 do
    local rule, field, cost = rules[c], singleCall[c * 2 - 1], floor(singleCall[c * 2] / 2)
    local level = rule.levels[1]
    local size = level.slots + 1
    local core = (level.coreSlots or level.slots) + 1
    local raws = redis.pcall('HMGET', KEYS[c * 2 - 1], '@', field)
    local about, raw = raws[1], raws[2]
    if rule.levels[2] or size == 1 or size > MANY or not (about and #about >= ABOUT_BYTES) then break end
    local begun, lasts, previousLasts, _, mark, _, version, createdAt, saved, _, code = fetch(ABOUT, about)
    if mark ~= rule.mark or code % 4096 ~= 0 or createdAt ~= request.createdAt[c] then break end
    if now < saved or now - saved >= SECOND then break end
    abouts[c] = about
    if now >= previousLasts and now - begun >= max(SECOND, lasts - now) then break end
    local state, known = nil, version
    if raw and #raw == core * 8 then
      state = { fetch(core == 3 and '<ddd' or formatOf(core), raw) }
      known = state[core]
      for slot = core, level.slots do state[slot] = 0 end
    elseif raw and #raw == size * 8 then
      state = { fetch(formatOf(size), raw) }
      known = state[size]
    elseif not raw and now >= previousLasts then
      state = { 0, 0 }
      for slot = 3, level.slots do state[slot] = 0 end
    end
    if not state or known ~= version then break end
    local pass, remaining, idleAt = passes[level.name], nil, nil
    if pass then
      remaining, idleAt = pass(level, state, now, cost)
    else
      local moves = makers[level.name]()
      if moves.delay(level, state, now, cost) == 0 then
        moves.take(level, state, now, cost, 0)
        remaining, idleAt = moves.remaining(level, state, now), moves.idleAt(level, state)
      end
    end
    if not remaining or idleAt > lasts or remaining >= REMAINING or idleAt - now >= RESETS then break end
    local stored = core < size and state[core] == 0 and core or size
    state[stored] = version
    local format = stored == 3 and '<ddd' or formatOf(stored)
    texts[c], reply[c + 1] = pack(format, unpack(state, 1, stored)), remaining * RESETS + (idleAt - now)
  end
  if texts[#rules] then
    for c = 1, #rules do
      local current = KEYS[c * 2 - 1]
      local added = call('HSET', current, singleCall[c * 2 - 1], texts[c])
      if added > 0 and call('HLEN', current) > partitionCallers then spreadFurther(current, abouts[c]) end
    end
    return reply
  end
  reply, request.partitions, request.codes = { now }, {}, { TAKE + 8 * #rules + ZERO, 1 + ZERO }
  local codes = request.codes
  for c = 1, #rules do
    local mayWait = singleCall[c * 2] % 2
    request.partitions[c] = { singleCall[c * 2 - 1] }
    codes[c * 2 + 1], codes[c * 2 + 2] = c * 2 + mayWait + ZERO, (singleCall[c * 2] - mayWait) / 2 + ZERO
  end
  for _ = 1, #rules do codes[#codes + 1] = 1 + ZERO end
end
`
