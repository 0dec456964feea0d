-- States of callers. Redis has a state as text: the numbers of each level of the rule, one level after the other, and at the end
-- the number of the layout that says which levels these are (see versions.lua). A run decodes a state once, changes it in
-- place, and encodes it once, when it is saved.

-- How many numbers each level has: all of them, and those that are always stored. 0 stands for a number that varies, and is
-- then stored before the others. If there is one level of few numbers, its formats by the length of a text.
local function widthsOf(levels)
  local widths = { all = {}, core = {}, coreSum = 0, isShorter = false, formats = {}, slots = 0 }
  for l, level in ipairs(levels) do
    local slots, core = level.slots, level.coreSlots or level.slots
    widths.all[l], widths.core[l], widths.coreSum = slots, core, widths.coreSum + core
    if core < slots then widths.isShorter = true end
  end
  local slots, core = widths.all[1], widths.core[1]
  if not levels[2] and core > 0 and slots < MANY then
    widths.slots, widths.formats[core * 8 + 8], widths.formats[slots * 8 + 8] = slots, formatOf(core + 1), formatOf(slots + 1)
  end
  return widths
end

-- A state that counts nothing; only a list that varies in length has its length beside it.
local function blank(slots)
  if slots == 0 then return { n = 0 } end
  if slots == 2 then return { 0, 0 } end
  local state = {}
  for slot = 1, slots do state[slot] = 0 end
  return state
end

local function numbersIn(raw)
  local count = #raw / 8
  if count <= MANY then return { fetch(formatOf(count), raw) }, count end
  local numbers = {}
  for first = 1, count, MANY do
    local size = min(MANY, count - first + 1)
    local some = { fetch(formatOf(size), raw, first * 8 - 7) }
    for i = 1, size do numbers[first + i - 1] = some[i] end
  end
  return numbers, count
end

-- The states of all levels; numbers that are not stored are 0. Nothing if the numbers are not of these levels.
local function statesIn(numbers, count, levels, widths)
  local slotsOf = count == widths.coreSum + 1 and widths.core or widths.all
  local states, from = {}, 0
  for l = 1, #levels do
    local slots, state = slotsOf[l], blank(levels[l].slots)
    if slots == 0 then
      from = from + 1
      slots = numbers[from]
      state.n = slots
    end
    if not (slots and slots >= 0 and from + slots < count) then return nil end
    for slot = 1, slots do state[slot] = numbers[from + slot] end
    from = from + slots
    states[l] = state
  end
  return from + 1 == count and states or nil
end

-- The text of a caller's states; `number` is that of their layout.
local function encode(states, place, levels, widths, number)
  local flat, size = states[1][place], widths.coreSum
  if widths.slots > 0 then
    if size < widths.slots and flat[size + 1] ~= 0 then size = widths.slots end
  else
    local slotsOf = widths.core
    for l = 1, widths.isShorter and #levels or 0 do
      local core = levels[l].coreSlots
      if core and states[l][place][core + 1] ~= 0 then slotsOf = widths.all end
    end
    flat, size = {}, 0
    for l = 1, #levels do
      local state, count = states[l][place], slotsOf[l]
      if count == 0 then
        count = state.n
        size = size + 1
        flat[size] = count
      end
      for slot = 1, count do flat[size + slot] = state[slot] end
      size = size + count
    end
  end
  if size == 2 then return pack('<ddd', flat[1], flat[2], number) end
  flat[size + 1] = number
  if size < MANY then return pack(formatOf(size + 1), unpack(flat, 1, size + 1)) end
  local texts = {}
  for first = 1, size + 1, MANY do
    local some = min(MANY, size + 2 - first)
    texts[#texts + 1] = pack(formatOf(some), unpack(flat, first, first + some - 1))
  end
  return table.concat(texts)
end
