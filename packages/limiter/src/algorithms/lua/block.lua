-- The moves of block.ts. Blocks grow if there is a firstMs.
local UNTIL, STEPS, ONCE = 1, 2, 2 ^ 40
local moves = {}

local function stepsOf(meter, state, now)
  if now >= state[UNTIL] + meter.forgetAfterMs * 1000 then return 0 end
  return state[STEPS]
end

local function lastsMs(meter, steps)
  local ms, step = meter.firstMs, 0
  while step < steps and ms < meter.maxMs and meter.factor > 1 do
    ms, step = ms * meter.factor, step + 1
  end
  return min(meter.maxMs, floor(ms))
end

function moves.delay(_, state, now, cost)
  return cost > 0 and 0 or max(0, state[UNTIL] - now)
end

function moves.take(meter, state, now, cost)
  if cost < ONCE then
    if meter.firstMs then state[STEPS] = stepsOf(meter, state, now) end
    state[UNTIL] = max(state[UNTIL], now + cost * 1000)
  elseif state[UNTIL] <= now then
    if meter.firstMs then
      local steps = stepsOf(meter, state, now)
      state[UNTIL], state[STEPS] = now + lastsMs(meter, steps) * 1000, steps + 1
    else
      state[UNTIL] = now + (cost - ONCE) * 1000
    end
  end
end

function moves.refund()
end

function moves.remaining(meter, state, now)
  if state[UNTIL] > now then return 0 end
  return meter.firstMs and lastsMs(meter, stepsOf(meter, state, now)) or 1
end

function moves.inherit(meter, old)
  if not meter.firstMs then return { old[UNTIL] } end
  return { old[UNTIL], old[STEPS] or 0 }
end

function moves.shift(_, state, us)
  state[UNTIL] = max(0, state[UNTIL] - us)
end

function moves.longest(meter, _, leftUs)
  return leftUs + (meter.forgetAfterMs or 0) * 1000
end

function moves.idleAt(meter, state)
  return state[UNTIL] == 0 and 0 or state[UNTIL] + (meter.forgetAfterMs or 0) * 1000
end

return moves
