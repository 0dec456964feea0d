-- Rules whose limit depends on the caller. Such a rule has one level, whose `inner` is the level of the limit that a request is
-- judged by, and `limits` are those of all limits that the rule states. A caller's state is a list of limits, the one that was used
-- last first, each with a state of its own:
--
--   mark, joinedAt, leftAt, idleAt, how many numbers the scale has, the state has, and are stored; the scale; the numbers
--
-- A call is judged by the state of its own limit, and recorded in all others, as limit-family.ts explains, which does the same
-- in memory. A limit that the request does not know came from outside: the state of the next limit continues it, and it is dropped.
local LIMIT_HEADER = 7
local MOST_SLOTS = 2000
local MOST_PARTS = 100
local varying = {}
made['*varying'] = varying

local function innerOf(level, mark)
  if mark == level.inner.mark then return level.inner end
  if not level.byMark then
    level.byMark = {}
    for _, inner in ipairs(level.limits) do level.byMark[inner.mark] = inner end
  end
  return level.byMark[mark]
end

local function isStated(level, mark)
  for _, inner in ipairs(level.limits) do
    if inner.mark == mark then return true end
  end
  return false
end

local function limitIdleAt(level, limit)
  local inner = innerOf(level, limit.mark)
  return inner and movesOf(inner).idleAt(inner, limit.state) or limit.idleAt
end

-- The limits of a state; none if nothing of them matters any more.
local function limitsIn(level, state)
  if state.limits then return state.limits end
  local limits, at, isLive = {}, 1, false
  while at + LIMIT_HEADER - 1 <= state.n do
    local scaleCount, slots, stored = state[at + 4], state[at + 5], state[at + 6]
    local limit = { mark = state[at], joinedAt = state[at + 1], leftAt = state[at + 2], idleAt = state[at + 3] }
    limit.scale, limit.state = {}, {}
    at = at + LIMIT_HEADER
    if not (scaleCount >= 0 and stored >= 0 and stored <= slots and slots <= MOST_SLOTS) then break end
    if at + scaleCount + stored - 1 > state.n then break end
    for i = 1, scaleCount do limit.scale[i] = state[at + i - 1] end
    at = at + scaleCount
    for slot = 1, slots do limit.state[slot] = slot <= stored and state[at + slot - 1] or 0 end
    at = at + stored
    limits[#limits + 1] = limit
    isLive = isLive or limitIdleAt(level, limit) > now
  end
  if not isLive then limits = {} end
  state.limits = limits
  return limits
end

-- Writes the limits back into the state.
local function keepLimits(level, state)
  local size = 0
  for _, limit in ipairs(state.limits) do
    local slots, stored = #limit.state, #limit.state
    while stored > 0 and limit.state[stored] == 0 do stored = stored - 1 end
    state[size + 1], state[size + 2], state[size + 3] = limit.mark, limit.joinedAt, limit.leftAt
    state[size + 4], state[size + 5], state[size + 6] = min(limitIdleAt(level, limit), LONGEST), #limit.scale, slots
    state[size + 7] = stored
    size = size + LIMIT_HEADER
    for i = 1, #limit.scale do state[size + i] = limit.scale[i] end
    size = size + #limit.scale
    for slot = 1, stored do state[size + slot] = limit.state[slot] end
    size = size + stored
  end
  state.n, state.joining = size, nil
end

-- The limit whose counts a new one continues: the one that was used last, or one of a longer period if that has forgotten too much.
local function ancestorOf(limits, period)
  if (limits[1].scale[1] or 0) >= period then return limits[1] end
  local longer, longest
  for _, limit in ipairs(limits) do
    local other = limit.scale[1] or 0
    if other >= period and (not longer or other < longer.scale[1]) then longer = limit end
    if not longest or other >= (longest.scale[1] or 0) then longest = limit end
  end
  return longer or longest
end

local function isSameScale(one, other)
  if #one ~= #other then return false end
  for i = 1, #one do
    if one[i] ~= other[i] then return false end
  end
  return true
end

local function blankLimit(inner, joinedAt)
  local scale = scaleIn(inner.shape)
  return { mark = inner.mark, joinedAt = joinedAt, leftAt = now, idleAt = 0, scale = scale, state = blank(inner.slots) }
end

-- The state of a limit that the caller has not had yet.
local function joiningOf(level, limits)
  local inner = level.inner
  if not limits[1] then return blankLimit(inner, -1) end
  local joining = blankLimit(inner, now)
  local scale = joining.scale
  local source = ancestorOf(limits, scale[1] or 0)
  if not isUsed(source.state, #source.state) then return joining end
  local copy = { n = #source.state }
  for slot = 1, copy.n do copy[slot] = source.state[slot] end
  if copy.n == inner.slots and isSameScale(scale, source.scale) then
    copy.n = nil
    joining.state = copy
  elseif #scale == #source.scale then
    -- limits of another kind, such as those of the calendar, begin with nothing
    local inherit = movesOf(inner).inherit
    joining.state = inherit and inherit(inner, copy, source.scale, now) or joining.state
  end
  return joining
end

-- The caller's state by the limit of the request, and whether it is one that the caller has had already.
local function ownIn(level, state)
  for _, limit in ipairs(limitsIn(level, state)) do
    if limit.mark == level.inner.mark then return limit, true end
  end
  local joining = state.joining
  if not (joining and joining.mark == level.inner.mark) then
    joining = joiningOf(level, state.limits)
    state.joining = joining
  end
  return joining, false
end

-- Puts a limit in front of the others; of those, limits from outside leave.
local function joinLimit(level, state, own)
  local after = { own }
  if state.limits[1] then state.limits[1].leftAt = now end
  for _, limit in ipairs(state.limits) do
    if isStated(level, limit.mark) then after[#after + 1] = limit end
  end
  state.limits = after
end

local function isSuperfluous(limit, staying)
  local period = limit.scale[1] or 0
  if now - limit.leftAt <= max(KEPT_US, period) then return false end
  for _, other in ipairs(staying) do
    if (other.scale[1] or 0) >= period then return true end
  end
  return false
end

-- Counts, by another limit, a call that the one of `own` has admitted.
local function recordByLimit(inner, limit, own, cost, delay)
  local moves, ownMoves = movesOf(inner), movesOf(own)
  local carries = moves.perUs and moves.perUs(inner) > (ownMoves.perUs and ownMoves.perUs(own) or huge) or false
  if moves.record then return moves.record(inner, limit.state, now, cost, delay, carries) end
  local fitsIn = carries and moves.delay(inner, limit.state, now, cost) or 0
  moves.take(inner, limit.state, now, cost, fitsIn < huge and max(delay, fitsIn) or delay)
end

-- More than a limit ever admits at once is recorded in parts, each of which can be counted ahead.
local function recordInParts(inner, limit, own, cost, delay)
  local capacity = inner.most or movesOf(inner).remaining(inner, blank(inner.slots), 0)
  if cost <= capacity or capacity == 0 then return recordByLimit(inner, limit, own, cost, delay) end
  local parts = min(MOST_PARTS, ceil(cost / capacity))
  for part = 1, parts do
    recordByLimit(inner, limit, own, part < parts and capacity or cost - (parts - 1) * capacity, delay)
  end
end

function varying.delay(level, state, moment, cost)
  return movesOf(level.inner).delay(level.inner, ownIn(level, state).state, moment, cost)
end

function varying.take(level, state, moment, cost, delay)
  local own, isKnown = ownIn(level, state)
  if not isKnown then
    joinLimit(level, state, own)
  elseif state.limits[1] ~= own then
    state.limits[1].leftAt = now
  end
  -- limits that cannot continue what another one has counted count all calls themselves
  if level.isEager and not state.limits[2] and isStated(level, own.mark) then
    for _, inner in ipairs(level.limits) do
      if inner.mark ~= own.mark then table.insert(state.limits, blankLimit(inner, -1)) end
    end
  end
  movesOf(level.inner).take(level.inner, own.state, moment, cost, delay)
  local staying = { own }
  for _, limit in ipairs(state.limits) do
    if limit ~= own and isStated(level, limit.mark) and not isSuperfluous(limit, staying) then
      staying[#staying + 1] = limit
      recordInParts(innerOf(level, limit.mark), limit, level.inner, cost, delay)
    end
  end
  state.limits = staying
  keepLimits(level, state)
end

function varying.begin(level, state, moment)
  local own, isKnown = ownIn(level, state)
  local isFirst, begin = not state.limits[1], movesOf(level.inner).begin
  local isBegun = begin and begin(level.inner, own.state, moment) or false
  if isKnown or isFirst then
    if isBegun and isFirst then joinLimit(level, state, own) end
    if isBegun then keepLimits(level, state) end
    return isBegun
  end
  joinLimit(level, state, own)
  keepLimits(level, state)
  return true
end

function varying.record(level, state, _, cost, delay)
  for _, limit in ipairs(limitsIn(level, state)) do
    local inner = innerOf(level, limit.mark)
    if inner then recordByLimit(inner, limit, inner, cost, delay) end
  end
  keepLimits(level, state)
end

-- Counts by all limits of a caller what was used beyond the one of the request.
function varying.overdraw(level, state, moment, cost)
  local own, isKnown = ownIn(level, state)
  if not isKnown then joinLimit(level, state, own) end
  for _, limit in ipairs(state.limits) do
    local inner = innerOf(level, limit.mark)
    local overdrawn = inner and movesOf(inner).overdraw
    if overdrawn then
      overdrawn(inner, limit.state, moment, cost)
    elseif inner then
      recordByLimit(inner, limit, level.inner, cost, 0)
    end
  end
  keepLimits(level, state)
end

function varying.refund(level, state, moment, cost, chargedAt)
  for _, limit in ipairs(limitsIn(level, state)) do
    local inner = innerOf(level, limit.mark)
    if inner then movesOf(inner).refund(inner, limit.state, moment, cost, chargedAt, limit.joinedAt) end
  end
  keepLimits(level, state)
end

function varying.remaining(level, state, moment)
  return movesOf(level.inner).remaining(level.inner, ownIn(level, state).state, moment)
end

function varying.fullAt(level, state)
  local moves, own = movesOf(level.inner), ownIn(level, state)
  return moves.fullAt and moves.fullAt(level.inner, own.state) or moves.idleAt(level.inner, own.state)
end

function varying.idleAt(level, state)
  local idleAt = 0
  for _, limit in ipairs(limitsIn(level, state)) do idleAt = max(idleAt, limitIdleAt(level, limit)) end
  return idleAt
end

function varying.perUs(level)
  local perUs = movesOf(level.inner).perUs
  return perUs and perUs(level.inner) or huge
end

function varying.shift(level, state, us)
  for _, limit in ipairs(limitsIn(level, state)) do
    local inner = innerOf(level, limit.mark)
    local shift = inner and movesOf(inner).shift
    if shift then shift(inner, limit.state, us) end
    limit.joinedAt, limit.leftAt = min(limit.joinedAt, now), min(limit.leftAt, now)
    limit.idleAt = limit.idleAt - us
  end
  keepLimits(level, state)
end
