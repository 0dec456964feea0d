-- The moves of block.ts.
local UNTIL, ONCE = 1, 2 ^ 40
local moves = {}

function moves.delay(_, state, now, cost)
  return cost > 0 and 0 or max(0, state[UNTIL] - now)
end

function moves.take(_, state, now, cost)
  if cost < ONCE then
    state[UNTIL] = max(state[UNTIL], now + cost * 1000)
  elseif state[UNTIL] <= now then
    state[UNTIL] = now + (cost - ONCE) * 1000
  end
end

function moves.refund()
end

function moves.remaining(_, state, now)
  return state[UNTIL] > now and 0 or 1
end

function moves.shift(_, state, us)
  state[UNTIL] = max(0, state[UNTIL] - us)
end

function moves.idleAt(_, state)
  return state[UNTIL]
end

return moves
