-- The numbers that the states of a level are measured by, the period first; and how many numbers a state has.
local function scaleIn(shape)
  local scale = {}
  for number in shape:gmatch('%S+') do scale[#scale + 1] = tonumber(number) end
  return scale, table.remove(scale, 1)
end

local function periodOf(level)
  return scaleIn(level.shape)[1]
end

local function algorithmOf(level)
  return string.match(level.shape, '=(.*)$')
end

-- The functions of each algorithm, made when a rule first needs them.
local made = {}

-- Levels of an algorithm that only other processes have stay unchanged.
local function unknownAlgorithm()
  local none = function() end
  return {
    take = none,
    refund = none,
    idleAt = function(level) return now + (periodOf(level) or 0) end,
  }
end

local function movesOf(level)
  local moves = made[level.name]
  if not moves then
    moves = (makers[level.name] or unknownAlgorithm)()
    made[level.name] = moves
  end
  return moves
end

local function movesOfAll(levels)
  local all = {}
  for l = 1, #levels do all[l] = movesOf(levels[l]) end
  return all
end
