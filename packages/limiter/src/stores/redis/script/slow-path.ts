import { SPREAD } from './spread.ts'
import { VERSIONS } from './versions.ts'

/**
 * The part of the script that few batches need: rules of several levels and places held, calls that are not let pass at
 * once, what is taken back, hashes that begin or grow old, and states of another shape.
 */
export function slowPathScript(otherMakers: string): string {
  return `
local rare
function seldom()
  if rare then return rare end
  rare = {}
  -- no state is as large
  local MOST = 100000
  -- a state that so many versions came after counts as nothing
  local VERSIONS = 250
  -- calls that hold a place may last for so long, and still free no place of others after a reset
  local HELD_US = 600000000

  -- moves of algorithms that this process has no rule of, but other processes may
  local function learnOthers()
${otherMakers}
  end

  -- levels of an algorithm that only other processes know are kept as they are
  local function strange()
    local none = function() end
    return { take = none, giveBack = none, idleAt = function(level) return now + (rare.periodOf(level) or 0) end }
  end

  local made = {}
  local function movesOf(level)
    if not makers[level.name] then learnOthers() end
    local moves = made[level.name] or (makers[level.name] or strange)()
    made[level.name] = moves
    return moves
  end

  function rare.passOf(level)
    local moves = movesOf(level)
    return function(meter, state, now, cost)
      if moves.delay(meter, state, now, cost) > 0 then return nil end
      moves.take(meter, state, now, cost, 0)
      return moves.remaining(meter, state, now), moves.idleAt(meter, state)
    end
  end

  -- what is no hash is none of ours
  local function readFields(key, ...)
    local raws = redis.pcall('HMGET', key, ...)
    if not raws.err then return raws end
    if raws.err:find('WRONGTYPE', 1, true) then call('UNLINK', key) end
    return call('HMGET', key, ...)
  end

${SPREAD}
  -- returns whether the request has its callers spread otherwise
  function rare.begin(home)
    if home.raws.err or home.raws[1] then
      readFields(home.young, '@')
      call('UNLINK', home.young)
      home.raws = {}
    end
    local about = readFields(home.old, '@')[1]
    home.isKnown, home.isSpelled, home.about = false, false, ''
    if about and #about >= ABOUT_BYTES then
      local begun, lasts, _, resetAt, mark, since, version, born, saved, _, code, seed = fetch(ABOUT, about)
      home.oldLasts, home.resetAt, home.about = lasts, resetAt, about
      home.mark, home.since, home.version, home.born, home.saved = mark, since, version, born, saved
      if lasts > now then
        local from, to, _, _, bank = levelsIn(code)
        home.oldBegun, home.seed, home.code = begun, seed, codeOf(floor(code / 4096) % 8, from, to, 1 - bank)
      end
    end
    if home.about == '' then
      local time = call('TIME')
      home.born = time[1] * SECOND + time[2]
    elseif now < home.saved then
      rare.stepBack(home)
    end
    home.isOldKnown = home.oldLasts <= now
    -- freed in the background, rather than at once when it expires
    if about and home.isOldKnown then call('UNLINK', home.old) end
    local layout = home.layout
    return home.code % 4096 ~= (layout and layout.code or 0) or (layout and layout.seed ~= home.seed)
  end

  -- what is young becomes old, once nothing that is old matters any more; returns whether callers are spread otherwise then
  function rare.growOld(home)
    local from, to, _, _, bank = levelsIn(home.code)
    local level = to > 0 and nextLevel(home, to, bank) or 0
    if level ~= to then
      local code = home.code + 4096 * (level - floor(home.code / 4096) % 8)
      local head, rest = string.sub(home.about, 1, ABOUT_BYTES - 16), string.sub(home.about, ABOUT_BYTES - 7)
      call('HSET', home.young, '@', head .. pack('<d', code) .. rest)
    end
    if home.version > 0 then rare.levelsOf(home, home.version) end
    call('UNLINK', home.old)
    if home.lasts > now then call('RENAME', home.young, home.old) else call('UNLINK', home.young) end
    home.code = codeOf(level, from, to, 1 - bank)
    home.oldBegun, home.begun, home.lasts, home.oldLasts = home.begun, now, 0, home.lasts
    home.isKnown, home.isSpelled = false, false
    if to > 0 and home.oldLasts <= now then
      home.code, home.seed = 0, 0
      return true
    end
    return level ~= to
  end

  -- adds what only the old hash knows
  function rare.readOld(home)
    local raws, fields, keys, n = home.raws, {}, {}, 0
    for key = 1, #home.fields do
      if not raws[key + 1] then
        n = n + 1
        fields[n], keys[n] = home.fields[key], key
      end
    end
    home.isOldKnown = true
    if home.layout then return readOlder(home, keys) end
    local found = readFields(home.old, unpack(fields))
    for i = 1, n do raws[keys[i] + 1] = found[i] end
  end

  local function scaleIn(words)
    local scale = {}
    for word in words:gmatch('%S+') do scale[#scale + 1] = tonumber(word) end
    return scale, table.remove(scale, 1)
  end

  function rare.periodOf(level)
    return scaleIn(level.shape)[1]
  end

${VERSIONS}
  function rare.forget(home)
    local fields = {}
    for key in pairs(home.gone) do
      fields[#fields + 1] = home.fields[key]
      for _, part in ipairs(partsWith(home, key)) do call('HDEL', part, home.fields[key]) end
    end
    if #fields == 0 then return end
    call('HDEL', home.young, unpack(fields))
    if home.oldLasts > now then call('HDEL', home.old, unpack(fields)) end
  end

  local function numbersIn(raw)
    local count = #raw / 8
    if count > MOST or count ~= floor(count) then return {}, 0 end
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
    local parts, from = {}, 0
    for l, slots in ipairs(slotsOf) do
      if slots == 0 then
        from = from + 1
        slots = numbers[from]
      end
      if not (slots and slots >= 0 and from + slots < count) then return nil end
      local part = { n = slots }
      for slot = 1, slots do part[slot] = numbers[from + slot] end
      from = from + slots
      parts[l] = part
    end
    return from + 1 == count and parts or nil
  end

  local function isUsed(part)
    for slot = 1, part.n do
      if part[slot] ~= 0 then return true end
    end
    return false
  end

  local function inherited(level, scale, part, at)
    if not isUsed(part) then return nil end
    local copy = { n = part.n }
    for slot = 1, part.n do copy[slot] = part[slot] end
    if part.shape == level.shape then return copy end
    local inherit = makers[level.name] and movesOf(level).inherit
    if not inherit or #part.scale ~= #scale then return nil end
    local state = inherit(level, copy, part.scale, at)
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
  local function partsIn(numbers, count, levels)
    local slots, sum = slotsOf(levels, true)
    local isShort = count == sum + 1
    local parts = laidOut(numbers, count, isShort and slots or slotsOf(levels))
    for l, part in ipairs(isShort and parts or {}) do
      for slot = part.n + 1, levels[l].slots do part[slot] = 0 end
      part.n = max(part.n, levels[l].slots)
    end
    return parts
  end

  -- what a version makes of the states of the version before
  local function converted(parts, elders, levels)
    local after = {}
    for l, level in ipairs(levels) do
      local part = level.from and parts[level.from]
      if part and not level.keeps then
        local elder = elders[level.from]
        part.shape, part.scale = elder.shape, scaleIn(elder.shape)
        part = inherited(level, scaleIn(level.shape), part, min(now, level.start))
      end
      after[l] = part or blank(level.slots)
    end
    return after
  end

  -- the states of an older version, as the one in force reads them; what is none of these counts as nothing
  local function foreignParts(home, numbers, count)
    local version = numbers[count]
    local isKnown = version and version < home.version and version >= home.version - VERSIONS
    local levels = isKnown and rare.levelsOf(home, version)
    local parts = levels and partsIn(numbers, count, levels)
    for later = (version or 0) + 1, parts and home.version or 0 do
      local heirs = rare.levelsOf(home, later)
      if not heirs then return {} end
      parts, levels = converted(parts, levels, heirs), heirs
      for l, level in ipairs(levels) do
        local shift = level.behindUs and movesOf(level).shift
        if shift and level.keeps and isUsed(parts[l]) then shift(level, parts[l], level.behindUs) end
      end
    end
    return parts or {}
  end

  -- the states of all levels, whatever it was that stored them
  function rare.open(rule, raw)
    local parts = {}
    if raw then
      local numbers, count = numbersIn(raw)
      if numbers[count] == rule.version then
        parts = partsIn(numbers, count, rule.all) or parts
      else
        parts = foreignParts(rule.home, numbers, count)
      end
    end
    for l, level in ipairs(rule.all) do parts[l] = parts[l] or blank(level.slots) end
    return parts
  end

  local function partsOf(rule, key)
    local home = rule.home
    if home.charge then home.charge(NOBODY) end
    if not (home.raws[key + 1] or home.isOldKnown) then rare.readOld(home) end
    return rare.open(rule, home.raws[key + 1])
  end

  local function textOf(rule, parts)
    local flat, n, isShort = {}, 0, true
    for l, level in ipairs(rule.all) do
      if level.coreSlots and parts[l][level.coreSlots + 1] ~= 0 then isShort = false end
    end
    for l, slots in ipairs(slotsOf(rule.all, isShort)) do
      local state = parts[l]
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

  local function store(rule, key, parts)
    local home, idleAt = rule.home, 0
    for l, level in ipairs(rule.all) do idleAt = max(idleAt, movesOf(level).idleAt(level, parts[l])) end
    local text = textOf(rule, parts)
    home.raws[key + 1] = text
    home.gone = home.gone or {}
    home.gone[key] = idleAt <= now or nil
    if idleAt <= now then return end
    home.written[home.n + 1], home.written[home.n + 2], home.n = home.fields[key], text, home.n + 2
    home.last = max(home.last, idleAt)
  end

  function rare.codesOf(text)
    local codes = {}
    for at = 1, #text do codes[at] = string.byte(text, at) end
    return codes
  end

  function rare.fillIn(codes, numbers)
    local next = 0
    for at = 1, #codes do
      if codes[at] == ESCAPE then
        next = next + 1
        codes[at] = numbers[next] + ZERO
      end
    end
  end

  -- gives back what the first charges of a call have taken
  function rare.undo(rules, words, calls, from, taken, firsts, seconds)
    for c = taken, 1, -1 do
      local rule, first = rules[floor(words[c] / 2)], firsts[c]
      rule.home.charge(NOBODY)
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

  -- judges a call by all its charges at once
  function rare.judge(rules, words, costs, calls, from, counting)
    local allowed, opened, waits, fitting, delays = true, {}, {}, {}, {}
    for c, word in ipairs(words) do
      local mayWait = word % 2
      local rule = rules[(word - mayWait) / 2]
      local parts, wait, fits = partsOf(rule, calls[from + c - 1] - ZERO), 0, true
      for l, level in ipairs(rule.levels) do
        local delay = movesOf(level).delay(level, parts[rule.at + l], now, costs[c])
        delays[#delays + 1] = delay
        if delay > 0 then
          wait = max(wait, delay)
          if mayWait == 0 or delay > (level.maxWaitUs or 0) then fits = false end
        end
      end
      opened[c], waits[c], fitting[c] = parts, wait, fits
      if not (fits or rule.isWatching) then allowed = false end
    end
    local d = 0
    for c, word in ipairs(words) do
      local rule, key, cost = rules[floor(word / 2)], calls[from + c - 1] - ZERO, costs[c]
      local parts, counts = opened[c], counting and allowed and cost > 0 and fitting[c]
      -- an earlier charge of this call may have been to the same key
      if counts and c > 1 then parts = partsOf(rule, key) end
      local isStored = counts
      for l, level in ipairs(rule.all) do
        local moves, state, isOwn = movesOf(level), parts[l], l > rule.at and l <= rule.at + #rule.levels
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
      if isStored then store(rule, key, parts) end
    end
  end

  -- counts what was missed, as far as it fits, and replies with what does not; returns where the next question begins
  function rare.catchUp(rules, calls, at, size)
    for _ = 1, size do
      local rule, key = rules[floor((calls[at] - ZERO) / 2)], calls[at + 1] - ZERO
      local parts, missed = partsOf(rule, key), 0
      at = at + 2
      for l, level in ipairs(rule.levels) do
        local moves, state = movesOf(level), parts[rule.at + l]
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
      -- what is known to be used, other versions are told by their own processes
      for l, level in ipairs(missed > 0 and rule.all or {}) do
        if l <= rule.at or l > rule.at + #rule.levels then record(rule, level, parts[l], missed, 0) end
      end
      store(rule, key, parts)
    end
    return at
  end

  -- whether the caller was reset after a charge
  local function isForgotten(home, key, chargedAt)
    if chargedAt > home.resetAt then return false end
    local field = '!' .. home.fields[key]
    local hashes = partsWith(home, key)
    table.insert(hashes, home.young)
    table.insert(hashes, home.old)
    for _, hash in ipairs(hashes) do
      local raw = readFields(hash, field)[1]
      if raw and #raw == 8 and chargedAt <= fetch('<d', raw) then return true end
    end
    return false
  end

  -- forgets a caller, and remembers when, as long as what was charged before could be given back
  local function reset(rule, key)
    local home, parts, idleAt = rule.home, partsOf(rule, key), 0
    if not home.raws[key + 1] then return end
    for l, level in ipairs(rule.all) do
      idleAt = max(idleAt, movesOf(level).idleAt(level, parts[l]), level.needsRelease and now + HELD_US or 0)
      parts[l] = blank(level.slots)
    end
    store(rule, key, parts)
    if idleAt <= now then return end
    home.written[home.n + 1], home.written[home.n + 2] = '!' .. home.fields[key], pack('<d', now)
    home.n, home.last, home.resetAt, home.isChanged = home.n + 2, max(home.last, idleAt), now, true
  end

  function rare.amend(rules, calls, at, size, move)
    for from = at, at + size * 5 - 5, 5 do
      local rule, key = rules[floor((calls[from] - ZERO) / 2)], calls[from + 1] - ZERO
      local amount, moment, wait = calls[from + 2] - ZERO, calls[from + 3] - ZERO, calls[from + 4] - ZERO
      if move == 'reset' then
        reset(rule, key)
      elseif move == 'renew' or not isForgotten(rule.home, key, moment - wait) then
        local parts = partsOf(rule, key)
        for l, level in ipairs(rule.all) do
          local amending = movesOf(level)[move]
          if amending then amending(level, parts[l], now, amount, moment, level.start or rule.since) end
        end
        store(rule, key, parts)
      end
    end
  end

  return rare
end
`
}
