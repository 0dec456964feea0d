import { MOST_CREDIT, type MoveCredit } from '../credits.ts'
import { escapePart } from '../ledger-keys.ts'
import { UnreadableReply } from '../store-error.ts'
import { evaluate, scriptOf } from './script/evaluate-script.ts'
import { credit } from './script/generated.ts'
import type { SendCommand } from './send-command.ts'

const CREDIT = scriptOf(credit)

/** Returns what moves credit in Redis: a number for each caller, in a slot of its own. */
export function creditInRedis(send: SendCommand, prefix: string): MoveCredit {
  return async (what, caller, permits) => {
    const name = `${prefix}:credit{${escapePart(caller)}}`
    const reply = await evaluate(send, CREDIT, [name], [what, String(permits), String(MOST_CREDIT)])
    const [moved, left] = Array.isArray(reply) ? reply.map(Number) : []
    if (!Number.isSafeInteger(moved) || !Number.isSafeInteger(left)) throw new UnreadableReply('two numbers', reply)
    return { moved: moved!, left: left! }
  }
}
