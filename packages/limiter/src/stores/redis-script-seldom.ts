/**
 * The part of the script that few batches need: rules of several levels and places held, calls that are not let pass at
 * once, what is taken back, hashes that begin or grow old, and states of another shape.
 */
export const SELDOM = `
local rare
function seldom()
  if rare then return rare end
  rare = {}
  -- no state is as large
  local MOST = 100000

  local made = {}
  local function movesOf(level)
    local moves = made[level.name] or makers[level.name]()
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

  function rare.begin(home)
    if home.raws.err or home.raws[1] then
      readFields(home.young, '@')
      call('UNLINK', home.young)
      home.raws = {}
    end
    local about = readFields(home.old, '@')[1]
    if about and #about == 40 then
      local _, lasts = fetch(ABOUT, about)
      home.oldLasts = lasts
    end
    home.isOldKnown = home.oldLasts <= now
  end

  -- what is young becomes old, once nothing that is old matters any more
  function rare.growOld(home)
    call('UNLINK', home.old)
    if home.lasts > now then call('RENAME', home.young, home.old) else call('UNLINK', home.young) end
    home.begun, home.lasts, home.oldLasts, home.mark, home.marks = now, 0, home.lasts, 0, 0
  end

  -- adds what only the old hash knows
  function rare.readOld(home)
    local raws, fields, places, n = home.raws, {}, {}, 0
    for key = 1, #home.fields do
      if not raws[key + 1] then
        n = n + 1
        fields[n], places[n] = home.fields[key], key + 1
      end
    end
    local found = readFields(home.old, unpack(fields))
    for i = 1, n do raws[places[i]] = found[i] end
    home.isOldKnown = true
  end

  function rare.learnShape(home, rule)
    local shapes = {}
    for l = 1, #rule.levels do shapes[l] = rule.levels[l].shape end
    local field = string.format('@%.0f', rule.mark)
    home.marks = home.marks + call('HSETNX', home.young, field, table.concat(shapes, ';'))
    home.mark, home.hasLearnt = rule.mark, true
    return true
  end

  function rare.forget(home)
    local fields = {}
    for key in pairs(home.gone) do fields[#fields + 1] = home.fields[key] end
    if #fields == 0 then return end
    call('HDEL', home.young, unpack(fields))
    if home.oldLasts > now then call('HDEL', home.old, unpack(fields)) end
    -- nothing but what is said of itself
    if call('HLEN', home.young) <= 1 + home.marks then call('UNLINK', home.young) end
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

  local function scaleIn(words)
    local scale = {}
    for word in words:gmatch('%S+') do scale[#scale + 1] = tonumber(word) end
    return scale, table.remove(scale, 1)
  end

  local function shapeOf(home, mark)
    if not (mark and mark >= 0 and mark < 2 ^ 53) then return nil end
    local field = string.format('@%.0f', mark)
    local shape = call('HGET', home.young, field)
    return shape or readFields(home.old, field)[1] or nil
  end

  -- what was stored by the same rule with another limit; what is none of that counts as nothing
  local function foreignParts(home, numbers, count)
    local shape = shapeOf(home, numbers[count])
    if not shape then return {} end
    local shapes, scales, slotsOf = {}, {}, {}
    for words in shape:gmatch('[^;]+') do
      local l = #shapes + 1
      shapes[l], scales[l], slotsOf[l] = words, scaleIn(words)
    end
    local parts = laidOut(numbers, count, slotsOf) or {}
    for l, part in ipairs(parts) do part.shape, part.scale = shapes[l], scales[l] end
    return parts
  end

  -- the level whose counts a new one goes on with: that of its period, else the next longer one, else the longest
  local function ancestorOf(scale, l, parts)
    local period, longer, longest = scale[1], nil, nil
    if not period or (parts[l] and parts[l].scale[1] == period) then return parts[l] end
    for p = 1, #parts do
      local other = parts[p].scale[1]
      if not other then return parts[l] end
      if other >= period and (not longer or other < longer.scale[1]) then longer = parts[p] end
      if not longest or other > longest.scale[1] then longest = parts[p] end
    end
    return longer or longest
  end

  local function inherited(level, scale, part)
    local copy, isKnown = { n = part.n }, false
    for slot = 1, part.n do
      copy[slot] = part[slot]
      if part[slot] ~= 0 then isKnown = true end
    end
    if not isKnown then return nil end
    if part.shape == level.shape then return copy end
    local inherit = movesOf(level).inherit
    if not inherit or #part.scale ~= #scale then return nil end
    local state = inherit(level, copy, part.scale, now)
    state.n = state.n or level.slots
    return state
  end

  local function blank(slots)
    local state = { n = slots }
    for slot = 1, slots do state[slot] = 0 end
    return state
  end

  local function slotsOf(rule)
    local slots = {}
    for l = 1, #rule.levels do slots[l] = rule.levels[l].slots end
    return slots
  end

  -- the states of all levels, whatever it was that stored them
  function rare.open(rule, raw)
    local parts = {}
    if raw then
      local numbers, count = numbersIn(raw)
      if numbers[count] == rule.mark then
        parts = laidOut(numbers, count, slotsOf(rule)) or parts
      else
        local foreign = foreignParts(rule.home, numbers, count)
        for l, level in ipairs(rule.levels) do
          local scale = scaleIn(level.shape)
          local ancestor = ancestorOf(scale, l, foreign)
          parts[l] = ancestor and inherited(level, scale, ancestor)
        end
      end
    end
    for l, level in ipairs(rule.levels) do parts[l] = parts[l] or blank(level.slots) end
    return parts
  end

  local function partsOf(rule, key)
    local home = rule.home
    if home.charge then home.charge(NOBODY) end
    if not (home.raws[key + 1] or home.isOldKnown) then rare.readOld(home) end
    return rare.open(rule, home.raws[key + 1])
  end

  local function textOf(rule, parts)
    local flat, n = {}, 0
    for l, slots in ipairs(slotsOf(rule)) do
      local state = parts[l]
      local count = state.n or slots
      if slots == 0 then
        n = n + 1
        flat[n] = count
      end
      for slot = 1, count do flat[n + slot] = state[slot] end
      n = n + count
    end
    flat[n + 1] = rule.mark
    local texts = {}
    for first = 1, n + 1, MANY do
      local size = min(MANY, n + 2 - first)
      texts[#texts + 1] = pack(formatOf(size), unpack(flat, first, first + size - 1))
    end
    return table.concat(texts)
  end

  local function store(rule, key, parts)
    local home, idleAt = rule.home, 0
    for l, level in ipairs(rule.levels) do idleAt = max(idleAt, movesOf(level).idleAt(level, parts[l])) end
    local text = textOf(rule, parts)
    home.raws[key + 1] = text
    home.gone = home.gone or {}
    home.gone[key] = idleAt <= now or nil
    if idleAt <= now then return end
    if home.mark ~= rule.mark then rare.learnShape(home, rule) end
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
    if reset > NEVER or (level.held and reset > 0) then reset = -1 end
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
        local delay = movesOf(level).delay(level, parts[l], now, costs[c])
        delays[#delays + 1] = delay
        if delay > 0 then
          wait = max(wait, delay)
          if mayWait == 0 or delay > (level.patienceUs or 0) then fits = false end
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
      for l, level in ipairs(rule.levels) do
        local moves, state = movesOf(level), parts[l]
        if counts then moves.take(level, state, now, cost, waits[c]) end
        d = d + 1
        report(level, delays[d], moves.remaining(level, state, now), moves.idleAt(level, state))
      end
      if counts then store(rule, key, parts) end
    end
  end

  -- counts what was missed, as far as it fits, and replies with what does not; returns where the next question begins
  function rare.catchUp(rules, calls, at, size)
    for _ = 1, size do
      local rule, key = rules[floor((calls[at] - ZERO) / 2)], calls[at + 1] - ZERO
      local parts = partsOf(rule, key)
      at = at + 2
      for l, level in ipairs(rule.levels) do
        local moves, state = movesOf(level), parts[l]
        local known, missing = calls[at] - ZERO, calls[at + 1] - ZERO
        local room = moves.remaining(level, state, now)
        local due = max(0, known + room - moves.remaining(level, blank(level.slots), now)) + missing
        if level.setsMoment then due, room = known, known end
        local taken = min(due, room)
        if taken > 0 then moves.take(level, state, now, taken, 0) end
        n = n + 1
        reply[n] = due - taken
        at = at + 2
      end
      store(rule, key, parts)
    end
    return at
  end

  function rare.amend(rules, calls, at, size, move)
    for from = at, at + size * 4 - 4, 4 do
      local rule, key = rules[floor((calls[from] - ZERO) / 2)], calls[from + 1] - ZERO
      local parts = partsOf(rule, key)
      for l, level in ipairs(rule.levels) do
        local amending = movesOf(level)[move]
        if amending then amending(level, parts[l], now, calls[from + 2] - ZERO, calls[from + 3] - ZERO) end
      end
      store(rule, key, parts)
    end
  end

  return rare
end
`
