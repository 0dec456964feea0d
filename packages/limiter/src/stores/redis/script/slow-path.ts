import { SPREAD } from './spread.ts'
import { VERSIONS } from './versions.ts'

/**
 * The slow path of the script, which few batches need: rules of several levels, concurrency slots, calls that do not pass at
 * once, refunds, new hashes and their rotation, and states of another shape.
 */
export function slowPathScript(otherMakers: string): string {
  return `
local slowPath
function slow()
  if slowPath then return slowPath end
  slowPath = {}
  -- no state is as large
  local MAX_NUMBERS = 100000
  -- a state that so many versions came after counts as nothing
  local VERSIONS = 250
  -- calls that hold a slot may last for so long, and still release no slot of others after a reset
  local HELD_US = 600000000

  -- algorithms that no rule of this process uses, but rules of other processes may
  local function learnOthers()
${otherMakers}
  end

  -- levels of an algorithm that only other processes know stay unchanged
  local function unknownAlgorithm()
    local none = function() end
    return { take = none, refund = none, idleAt = function(level) return now + (slowPath.periodOf(level) or 0) end }
  end

  local made = {}
  local function movesOf(level)
    if not makers[level.name] then learnOthers() end
    local moves = made[level.name] or (makers[level.name] or unknownAlgorithm)()
    made[level.name] = moves
    return moves
  end

  function slowPath.passOf(level)
    local moves = movesOf(level)
    return function(meter, state, now, cost)
      if moves.delay(meter, state, now, cost) > 0 then return nil end
      moves.take(meter, state, now, cost, 0)
      return moves.remaining(meter, state, now), moves.idleAt(meter, state)
    end
  end

  -- a key of another type is not ours: delete it
  local function readFields(key, ...)
    local raws = redis.pcall('HMGET', key, ...)
    if not raws.err then return raws end
    if raws.err:find('WRONGTYPE', 1, true) then call('UNLINK', key) end
    return call('HMGET', key, ...)
  end

${SPREAD}
  -- returns whether the request has its callers spread otherwise
  function slowPath.begin(partition)
    if partition.raws.err or partition.raws[1] then
      readFields(partition.current, '@')
      call('UNLINK', partition.current)
      partition.raws = {}
    end
    local about = readFields(partition.previous, '@')[1]
    partition.isKnown, partition.isSpelled, partition.about = false, false, ''
    if about and #about >= ABOUT_BYTES then
      local begun, lasts, _, resetAt, mark, since, version, createdAt, saved, _, code, seed = fetch(ABOUT, about)
      partition.previousLasts, partition.resetAt, partition.about = lasts, resetAt, about
      partition.mark, partition.since, partition.version, partition.createdAt, partition.saved = mark, since, version, createdAt, saved
      if lasts > now then
        local from, to, _, _, bank = levelsIn(code)
        partition.previousBegun, partition.seed, partition.code = begun, seed, codeOf(floor(code / 4096) % 8, from, to, 1 - bank)
      end
    end
    if partition.about == '' then
      local time = call('TIME')
      partition.createdAt = time[1] * SECOND + time[2]
    elseif now < partition.saved then
      slowPath.stepBack(partition)
    end
    partition.isPreviousKnown = partition.previousLasts <= now
    -- freed in the background, rather than at once when it expires
    if about and partition.isPreviousKnown then call('UNLINK', partition.previous) end
    local layout = partition.layout
    return partition.code % 4096 ~= (layout and layout.code or 0) or (layout and layout.seed ~= partition.seed)
  end

  -- the current hash becomes the previous one, once nothing in the previous one matters any more; returns whether callers are spread otherwise then
  function slowPath.rotate(partition)
    local from, to, _, _, bank = levelsIn(partition.code)
    local level = to > 0 and nextLevel(partition, to, bank) or 0
    if level ~= to then
      local code = partition.code + 4096 * (level - floor(partition.code / 4096) % 8)
      local head, rest = string.sub(partition.about, 1, ABOUT_BYTES - 16), string.sub(partition.about, ABOUT_BYTES - 7)
      call('HSET', partition.current, '@', head .. pack('<d', code) .. rest)
    end
    if partition.version > 0 then slowPath.levelsOf(partition, partition.version) end
    call('UNLINK', partition.previous)
    if partition.lasts > now then call('RENAME', partition.current, partition.previous) else call('UNLINK', partition.current) end
    partition.code = codeOf(level, from, to, 1 - bank)
    partition.previousBegun, partition.begun, partition.lasts, partition.previousLasts = partition.begun, now, 0, partition.lasts
    partition.isKnown, partition.isSpelled = false, false
    if to > 0 and partition.previousLasts <= now then
      partition.code, partition.seed = 0, 0
      return true
    end
    return level ~= to
  end

  -- adds callers that are only in the previous hash
  function slowPath.readPrevious(partition)
    local raws, fields, keys, n = partition.raws, {}, {}, 0
    for key = 1, #partition.fields do
      if not raws[key + 1] then
        n = n + 1
        fields[n], keys[n] = partition.fields[key], key
      end
    end
    partition.isPreviousKnown = true
    if partition.layout then return readOlderShards(partition, keys) end
    local found = readFields(partition.previous, unpack(fields))
    for i = 1, n do raws[keys[i] + 1] = found[i] end
  end

  local function scaleIn(shape)
    local scale = {}
    for number in shape:gmatch('%S+') do scale[#scale + 1] = tonumber(number) end
    return scale, table.remove(scale, 1)
  end

  function slowPath.periodOf(level)
    return scaleIn(level.shape)[1]
  end

${VERSIONS}
  function slowPath.forget(partition)
    local fields = {}
    for key in pairs(partition.gone) do
      fields[#fields + 1] = partition.fields[key]
      for _, shard in ipairs(shardsWith(partition, key)) do call('HDEL', shard, partition.fields[key]) end
    end
    if #fields == 0 then return end
    call('HDEL', partition.current, unpack(fields))
    if partition.previousLasts > now then call('HDEL', partition.previous, unpack(fields)) end
  end

  local function numbersIn(raw)
    local count = #raw / 8
    if count > MAX_NUMBERS or count ~= floor(count) then return {}, 0 end
    local numbers = {}
    for first = 1, count, MANY do
      local size = min(MANY, count - first + 1)
      local some = { fetch(formatOf(size), raw, first * 8 - 7) }
      for i = 1, size do numbers[first + i - 1] = some[i] end
    end
    return numbers, count
  end

  -- the states of all levels as a shape lays them out: where it says 0 slots, their number stands first
  local function laidOut(numbers, count, slotsOf)
    local states, from = {}, 0
    for l, slots in ipairs(slotsOf) do
      if slots == 0 then
        from = from + 1
        slots = numbers[from]
      end
      if not (slots and slots >= 0 and from + slots < count) then return nil end
      local state = { n = slots }
      for slot = 1, slots do state[slot] = numbers[from + slot] end
      from = from + slots
      states[l] = state
    end
    return from + 1 == count and states or nil
  end

  local function isUsed(state)
    for slot = 1, state.n do
      if state[slot] ~= 0 then return true end
    end
    return false
  end

  local function inherited(level, scale, stored, at)
    if not isUsed(stored) then return nil end
    local copy = { n = stored.n }
    for slot = 1, stored.n do copy[slot] = stored[slot] end
    if stored.shape == level.shape then return copy end
    local inherit = makers[level.name] and movesOf(level).inherit
    if not inherit or #stored.scale ~= #scale then return nil end
    local state = inherit(level, copy, stored.scale, at)
    state.n = state.n or level.slots
    return state
  end

  local function blank(slots)
    local state = { n = slots }
    for slot = 1, slots do state[slot] = 0 end
    return state
  end

  -- how many numbers each level has, all of them or those that are always stored
  local function slotsOf(levels, isShort)
    local slots, sum = {}, 0
    for l, level in ipairs(levels) do
      slots[l] = isShort and level.coreSlots or level.slots
      sum = sum + slots[l]
    end
    return slots, sum
  end

  -- the states of all levels; numbers that are not stored are 0
  local function statesIn(numbers, count, levels)
    local slots, sum = slotsOf(levels, true)
    local isShort = count == sum + 1
    local states = laidOut(numbers, count, isShort and slots or slotsOf(levels))
    for l, state in ipairs(isShort and states or {}) do
      for slot = state.n + 1, levels[l].slots do state[slot] = 0 end
      state.n = max(state.n, levels[l].slots)
    end
    return states
  end

  -- what a version makes of the states of the version before
  local function converted(states, earlierLevels, levels)
    local after = {}
    for l, level in ipairs(levels) do
      local state = level.from and states[level.from]
      if state and not level.keeps then
        local earlier = earlierLevels[level.from]
        state.shape, state.scale = earlier.shape, scaleIn(earlier.shape)
        state = inherited(level, scaleIn(level.shape), state, min(now, level.start))
      end
      after[l] = state or blank(level.slots)
    end
    return after
  end

  -- the states of an older version, as the one in force reads them; what is none of these counts as nothing
  local function olderStates(partition, numbers, count)
    local version = numbers[count]
    local isKnown = version and version < partition.version and version >= partition.version - VERSIONS
    local levels = isKnown and slowPath.levelsOf(partition, version)
    local states = levels and statesIn(numbers, count, levels)
    for later = (version or 0) + 1, states and partition.version or 0 do
      local laterLevels = slowPath.levelsOf(partition, later)
      if not laterLevels then return {} end
      states, levels = converted(states, levels, laterLevels), laterLevels
      for l, level in ipairs(levels) do
        local shift = level.behindUs and movesOf(level).shift
        if shift and level.keeps and isUsed(states[l]) then shift(level, states[l], level.behindUs) end
      end
    end
    return states or {}
  end

  -- the states of all levels, whatever it was that stored them
  function slowPath.open(rule, raw)
    local states = {}
    if raw then
      local numbers, count = numbersIn(raw)
      if numbers[count] == rule.version then
        states = statesIn(numbers, count, rule.all) or states
      else
        states = olderStates(rule.partition, numbers, count)
      end
    end
    for l, level in ipairs(rule.all) do states[l] = states[l] or blank(level.slots) end
    return states
  end

  local function statesOf(rule, key)
    local partition = rule.partition
    if partition.charge then partition.charge(NO_KEY) end
    if not (partition.raws[key + 1] or partition.isPreviousKnown) then slowPath.readPrevious(partition) end
    return slowPath.open(rule, partition.raws[key + 1])
  end

  local function textOf(rule, states)
    local flat, n, isShort = {}, 0, true
    for l, level in ipairs(rule.all) do
      if level.coreSlots and states[l][level.coreSlots + 1] ~= 0 then isShort = false end
    end
    for l, slots in ipairs(slotsOf(rule.all, isShort)) do
      local state = states[l]
      local count = slots == 0 and state.n or slots
      if slots == 0 then
        n = n + 1
        flat[n] = count
      end
      for slot = 1, count do flat[n + slot] = state[slot] end
      n = n + count
    end
    flat[n + 1] = rule.version
    local texts = {}
    for first = 1, n + 1, MANY do
      local size = min(MANY, n + 2 - first)
      texts[#texts + 1] = pack(formatOf(size), unpack(flat, first, first + size - 1))
    end
    return table.concat(texts)
  end

  local function store(rule, key, states)
    local partition, idleAt = rule.partition, 0
    for l, level in ipairs(rule.all) do idleAt = max(idleAt, movesOf(level).idleAt(level, states[l])) end
    local text = textOf(rule, states)
    partition.raws[key + 1] = text
    partition.gone = partition.gone or {}
    partition.gone[key] = idleAt <= now or nil
    if idleAt <= now then return end
    partition.written[partition.n + 1], partition.written[partition.n + 2], partition.n = partition.fields[key], text, partition.n + 2
    partition.last = max(partition.last, idleAt)
  end

  function slowPath.codesOf(text)
    local codes = {}
    for at = 1, #text do codes[at] = string.byte(text, at) end
    return codes
  end

  function slowPath.fillIn(codes, numbers)
    local next = 0
    for at = 1, #codes do
      if codes[at] == ESCAPE then
        next = next + 1
        codes[at] = numbers[next] + ZERO
      end
    end
  end

  -- undoes the first charges of a call
  function slowPath.undo(rules, ruleCodes, calls, from, taken, firsts, seconds)
    for c = taken, 1, -1 do
      local rule, first = rules[floor(ruleCodes[c] / 2)], firsts[c]
      rule.partition.charge(NO_KEY)
      store(rule, calls[from + c - 1] - ZERO, { type(first) == 'table' and first or { first, seconds[c] } })
    end
  end

  local function report(level, delay, remaining, idleAt)
    if delay > 0 then
      n = n + 1
      reply[n] = -min(delay + 1, NEVER)
    end
    local reset = max(0, idleAt - now)
    if reset > NEVER or (level.needsRelease and reset > 0) then reset = -1 end
    if remaining < REMAINING and reset >= 0 and reset < RESETS then
      n = n + 1
      reply[n] = remaining * RESETS + reset
    else
      reply[n + 1], reply[n + 2], reply[n + 3] = -1, remaining, reset
      n = n + 3
    end
  end

  -- decides a call by all its charges at once
  function slowPath.decide(rules, ruleCodes, costs, calls, from, counting)
    local allowed, opened, waits, fitting, delays = true, {}, {}, {}, {}
    for c, ruleCode in ipairs(ruleCodes) do
      local mayWait = ruleCode % 2
      local rule = rules[(ruleCode - mayWait) / 2]
      local states, wait, fits = statesOf(rule, calls[from + c - 1] - ZERO), 0, true
      for l, level in ipairs(rule.levels) do
        local delay = movesOf(level).delay(level, states[rule.at + l], now, costs[c])
        delays[#delays + 1] = delay
        if delay > 0 then
          wait = max(wait, delay)
          if mayWait == 0 or delay > (level.maxWaitUs or 0) then fits = false end
        end
      end
      opened[c], waits[c], fitting[c] = states, wait, fits
      if not (fits or rule.shadow) then allowed = false end
    end
    local d = 0
    for c, ruleCode in ipairs(ruleCodes) do
      local rule, key, cost = rules[floor(ruleCode / 2)], calls[from + c - 1] - ZERO, costs[c]
      local states, counts = opened[c], counting and allowed and cost > 0 and fitting[c]
      -- an earlier charge of this call may have been to the same key
      if counts and c > 1 then states = statesOf(rule, key) end
      local isStored = counts
      for l, level in ipairs(rule.all) do
        local moves, state, isOwn = movesOf(level), states[l], l > rule.at and l <= rule.at + #rule.levels
        if counts and isOwn then
          moves.take(level, state, now, cost, waits[c])
        elseif counts then
          record(rule, level, state, cost, waits[c])
        elseif counting and cost > 0 and moves.begin and moves.begin(level, state, now) then
          isStored = true
        end
        if isOwn then
          d = d + 1
          report(level, delays[d], moves.remaining(level, state, now), (moves.fullAt or moves.idleAt)(level, state))
        end
      end
      if isStored then store(rule, key, states) end
    end
  end

  -- counts what was missed, as far as it fits, and replies with what does not; returns where the next request begins
  function slowPath.catchUp(rules, calls, at, size)
    for _ = 1, size do
      local rule, key = rules[floor((calls[at] - ZERO) / 2)], calls[at + 1] - ZERO
      local states, missed = statesOf(rule, key), 0
      at = at + 2
      for l, level in ipairs(rule.levels) do
        local moves, state = movesOf(level), states[rule.at + l]
        local known, missing = calls[at] - ZERO, calls[at + 1] - ZERO
        local room = moves.remaining(level, state, now)
        local due = max(0, known + room - (level.most or moves.remaining(level, blank(level.slots), now))) + missing
        if level.setsMoment then due, room = known, known end
        local taken = min(due, room)
        if taken > 0 then moves.take(level, state, now, taken, 0) end
        missed = max(missed, missing)
        n = n + 1
        reply[n] = due - taken
        at = at + 2
      end
      -- other versions get what is known to be used from their own processes
      for l, level in ipairs(missed > 0 and rule.all or {}) do
        if l <= rule.at or l > rule.at + #rule.levels then record(rule, level, states[l], missed, 0) end
      end
      store(rule, key, states)
    end
    return at
  end

  -- whether the caller was reset after a charge
  local function isForgotten(partition, key, chargedAt)
    if chargedAt > partition.resetAt then return false end
    local field = '!' .. partition.fields[key]
    local hashes = shardsWith(partition, key)
    table.insert(hashes, partition.current)
    table.insert(hashes, partition.previous)
    for _, hash in ipairs(hashes) do
      local raw = readFields(hash, field)[1]
      if raw and #raw == 8 and chargedAt <= fetch('<d', raw) then return true end
    end
    return false
  end

  -- forgets a caller, and remembers when, as long as charges before that could be refunded
  local function reset(rule, key)
    local partition, states, idleAt = rule.partition, statesOf(rule, key), 0
    if not partition.raws[key + 1] then return end
    for l, level in ipairs(rule.all) do
      idleAt = max(idleAt, movesOf(level).idleAt(level, states[l]), level.needsRelease and now + HELD_US or 0)
      states[l] = blank(level.slots)
    end
    store(rule, key, states)
    if idleAt <= now then return end
    partition.written[partition.n + 1], partition.written[partition.n + 2] = '!' .. partition.fields[key], pack('<d', now)
    partition.n, partition.last, partition.resetAt, partition.isChanged = partition.n + 2, max(partition.last, idleAt), now, true
  end

  function slowPath.amend(rules, calls, at, size, move)
    for from = at, at + size * 5 - 5, 5 do
      local rule, key = rules[floor((calls[from] - ZERO) / 2)], calls[from + 1] - ZERO
      local amount, moment, wait = calls[from + 2] - ZERO, calls[from + 3] - ZERO, calls[from + 4] - ZERO
      if move == 'reset' then
        reset(rule, key)
      elseif move == 'renew' or not isForgotten(rule.partition, key, moment - wait) then
        local states = statesOf(rule, key)
        for l, level in ipairs(rule.all) do
          local amending = movesOf(level)[move]
          if amending then amending(level, states[l], now, amount, moment, level.start or rule.since) end
        end
        store(rule, key, states)
      end
    end
  end

  return slowPath
end
`
}
