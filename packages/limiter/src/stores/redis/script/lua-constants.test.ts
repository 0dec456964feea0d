import { expect, test } from 'vitest'
import { inlineConstants } from './lua-constants.ts'

test('constants are written out where they are used, and nothing else is touched', () => {
  const lua = `
local START, COUNT = 1, 2
local MOST = 2 ^ 26 - 1
local moves = {}
  local INNER = 'x'
function moves.take(state) state[START] = state[COUNT] + MOST .. INNER .. COUNTED .. KEYS[1] end
`
  expect(inlineConstants(lua)).toBe(`
local moves = {}
function moves.take(state) state[1] = state[2] + (2 ^ 26 - 1) .. 'x' .. COUNTED .. KEYS[1] end
`)
})
