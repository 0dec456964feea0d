/**
 * The part of the script that reads and writes states. All callers of a rule live in one hash, so that a batch reads and
 * writes them with one command each. A hash cannot forget single callers, so there are two of them, a young and an old:
 *
 *   young  |=========|==========|======...      what is counted goes into the young hash
 *   old         |    `----> old |                it is looked for in the young one first, then in the old one
 *               `- dropped when nothing in it matters any more; then the young one becomes the old one
 *
 * The field '@' of a hash holds five numbers: when it was begun, until when anything in it matters, until when the old
 * one does, the mark of the latest shape in it, and how many shapes it knows. A shape ('2 60000000 1 0') says how the
 * states of the levels are laid out: slots and scale of each. Its mark ends every state, and the field '@' .. mark spells
 * it out, so that a rule with another limit can go on with what was counted. Other fields are callers.
 */
export const STATES = `
local SECOND = 1000000
-- Lua returns at most 8000 values at once; and no state is as large as the second
local MANY, MOST = 1000, 100000
-- Redis takes no expiry that is without end
local LONGEST = 1e16
local ABOUT = '<ddddd'

local function formatOf(numbers)
  return '<' .. string.rep('d', numbers)
end

-- what is no hash is none of ours
local function readFields(key, ...)
  local raws = redis.pcall('HMGET', key, ...)
  if not raws.err then return raws end
  if raws.err:find('WRONGTYPE', 1, true) then call('UNLINK', key) end
  return call('HMGET', key, ...)
end

local function readAbout(home, about)
  if not about or #about ~= 40 then return false end
  home.begun, home.lasts, home.oldLasts, home.mark, home.marks = fetch(ABOUT, about)
  return true
end

-- what is young becomes old, once nothing that is old matters any more
local function growOld(home)
  call('UNLINK', home.old)
  if home.lasts > now then call('RENAME', home.young, home.old) else call('UNLINK', home.young) end
  home.begun, home.lasts, home.oldLasts, home.mark, home.marks = now, 0, home.lasts, 0, 0
end

-- adds what only the old hash knows
local function readOld(home, raws)
  local fields, places, n = {}, {}, 0
  for key = 1, home.size do
    if not raws[key + 1] then
      n = n + 1
      fields[n], places[n] = ARGV[home.from + key], key + 1
    end
  end
  if n == 0 then return end
  local found = readFields(home.old, unpack(fields))
  for i = 1, n do raws[places[i]] = found[i] end
end

local function openHome(home)
  local from, young = home.from, home.young
  local raws = readFields(young, '@', unpack(ARGV, from + 1, from + home.size))
  local hasGrownOld = false
  if readAbout(home, raws[1]) then
    hasGrownOld = now >= home.oldLasts and now - home.begun >= max(SECOND, home.lasts - now)
    if hasGrownOld then growOld(home) end
  else
    if raws[1] then
      call('UNLINK', young)
      raws = {}
    end
    local lasts = readAbout(home, readFields(home.old, '@')[1]) and home.lasts or 0
    home.begun, home.lasts, home.oldLasts, home.mark, home.marks = now, 0, lasts, 0, 0
  end
  if home.oldLasts > now and not hasGrownOld then readOld(home, raws) end
  home.raws = raws
end

-- what is seldom needed is only defined when it is
local function inheritance()
  local function blank(level)
    local state = { n = level.slots }
    for slot = 1, level.slots do state[slot] = 0 end
    return state
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

  -- the states of all levels as they were stored: where a shape says 0 slots, their number stands first. What is none
  -- of that counts as nothing.
  local function partsOf(home, raw)
    local numbers, count = numbersIn(raw)
    local shape = shapeOf(home, numbers[count])
    if not shape then return {} end
    local parts, from = {}, 0
    for words in shape:gmatch('[^;]+') do
      local part = { shape = words }
      part.scale, part.n = scaleIn(words)
      if part.n == 0 then
        from = from + 1
        part.n = numbers[from]
      end
      if not (part.n and part.n >= 0 and from + part.n < count) then return {} end
      for slot = 1, part.n do part[slot] = numbers[from + slot] end
      from = from + part.n
      parts[#parts + 1] = part
    end
    return from + 1 == count and parts or {}
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
    if not level.moves.inherit or #part.scale ~= #scale then return nil end
    local state = level.moves.inherit(level, copy, part.scale, now)
    state.n = state.n or level.slots
    return state
  end

  -- the state that each level of a rule makes of what the same rule with another limit has left
  local function adopt(rule, parts)
    local states = {}
    for l = 1, #rule.levels do
      local level = rule.levels[l]
      local scale = scaleIn(level.shape)
      local part = ancestorOf(scale, l, parts)
      states[l] = part and inherited(level, scale, part) or blank(level)
    end
    return rule.plain and states[1] or states
  end

  -- a process that has just changed its rules may count one key by two limits
  local function partsBy(rule, state)
    local parts = {}
    for l = 1, #rule.levels do
      local level, part = rule.levels[l], rule.plain and state or state[l]
      parts[l], part.n, part.shape, part.scale = part, part.n or level.slots, level.shape, scaleIn(level.shape)
    end
    return parts
  end

  return {
    fromStored = function(rule, raw) return adopt(rule, raw and partsOf(rule.home, raw) or {}) end,
    fromOther = function(rule, other, state) return adopt(rule, partsBy(other, state)) end,
  }
end

local function blankState(size)
  local state = {}
  for slot = 1, size do state[slot] = 0 end
  return state
end

local function loadState(rule, key)
  local home, state = rule.home, nil
  local owner = home.owners[key]
  if owner then
    state = inheritance().fromOther(rule, owner, home.states[key])
  else
    state = inheritance().fromStored(rule, home.raws[key + 1])
  end
  home.states[key], home.owners[key] = state, rule
  return state
end

-- the states of a rule that has its home for itself, all at once
local function loadStates(rule)
  local home, format, size, bytes, mark = rule.home, rule.plain, rule.size, rule.bytes, rule.mark
  local raws, states = home.raws, home.states
  for key = 1, home.size do
    local raw = raws[key + 1]
    if raw and #raw == bytes then
      local state = { fetch(format, raw) }
      states[key] = state[size] == mark and state or inheritance().fromStored(rule, raw)
    elseif raw then
      states[key] = inheritance().fromStored(rule, raw)
    else
      states[key] = blankState(size)
    end
  end
  home.owner = rule
end

local function textOf(rule, states)
  local flat, n = {}, 0
  for l = 1, #rule.levels do
    local level, state = rule.levels[l], rule.plain and states or states[l]
    local count = state.n or level.slots
    if level.slots == 0 then
      n = n + 1
      flat[n] = count
    end
    for slot = 1, count do flat[n + slot] = state[slot] end
    n = n + count
  end
  flat[n + 1] = rule.mark
  local parts = {}
  for first = 1, n + 1, MANY do
    local size = min(MANY, n + 2 - first)
    parts[#parts + 1] = pack(formatOf(size), unpack(flat, first, first + size - 1))
  end
  return table.concat(parts)
end

local function learnShape(home, rule)
  local shapes = {}
  for l = 1, #rule.levels do shapes[l] = rule.levels[l].shape end
  local field = string.format('@%.0f', rule.mark)
  home.marks = home.marks + call('HSETNX', home.young, field, table.concat(shapes, ';'))
  home.mark = rule.mark
end

local function forget(home, fields)
  call('HDEL', home.young, unpack(fields))
  if home.oldLasts > now then call('HDEL', home.old, unpack(fields)) end
  -- nothing but what is said of itself
  if call('HLEN', home.young) <= 1 + home.marks then call('UNLINK', home.young) end
end

local function saveHome(home)
  local idles, owner, states, from = home.idles, home.owner, home.states, home.from
  local written, n, gone, last, mark = {}, 0, nil, 0, home.mark
  local format, size = owner and owner.plain, owner and owner.size
  for key = 1, home.size do
    local idleAt = idles[key]
    if idleAt and idleAt > now then
      local rule, state = owner or home.owners[key], states[key]
      if rule.mark ~= home.mark then learnShape(home, rule) end
      written[n + 1] = ARGV[from + key]
      if size == 3 then
        written[n + 2] = pack(format, state[1], state[2], rule.mark)
      elseif size then
        state[size] = rule.mark
        written[n + 2] = pack(format, unpack(state, 1, size))
      else
        written[n + 2] = textOf(rule, state)
      end
      n = n + 2
      if idleAt > last then last = idleAt end
    elseif idleAt then
      gone = gone or {}
      gone[#gone + 1] = ARGV[from + key]
    end
  end
  local lastsLonger = last > home.lasts
  -- some more than is needed, so that it need not be said again for a while
  if lastsLonger then home.lasts = min(now + (last - now) * 1.25, now + LONGEST) end
  if lastsLonger or home.mark ~= mark then
    written[n + 1] = '@'
    written[n + 2] = pack(ABOUT, home.begun, home.lasts, home.oldLasts, home.mark, home.marks)
    n = n + 2
  end
  if n > 0 then call('HSET', home.young, unpack(written, 1, n)) end
  if lastsLonger then
    local ttlMs = ceil((home.lasts - now) / 1000) + request.lingerMs
    call('PEXPIRE', home.young, string.format('%.0f', ttlMs))
  end
  if gone then forget(home, gone) end
end
`
