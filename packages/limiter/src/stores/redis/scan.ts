import { UnreadableReply } from '../store-error.ts'
import type { SendCommand } from './send-command.ts'

/** How many keys of Redis are looked at in one step, and in how many steps at most. */
const SCANNED = 1000
const MOST_SCANS = 2000

/**
 * Lists keys of all nodes, some at a time, until `visit` returns false. Redis lists its keys in no order, so that a rule with few
 * callers among many keys takes long.
 */
export async function scan(
  nodes: readonly SendCommand[],
  pattern: string,
  visit: (names: string[]) => boolean | Promise<boolean>,
): Promise<void> {
  const scanNode = async (send: SendCommand): Promise<void> => {
    let cursor = '0'
    for (let scans = 0; scans < MOST_SCANS; scans++) {
      const reply: unknown = await send(['SCAN', cursor, 'MATCH', pattern, 'COUNT', String(SCANNED)])
      const [next, names] = Array.isArray(reply) ? (reply as [unknown, unknown]) : []
      if (!Array.isArray(names)) throw new UnreadableReply('keys', reply)
      if (!(await visit(names.map(String)))) return
      cursor = String(next)
      if (cursor === '0') return
    }
  }
  await Promise.all(nodes.map(scanNode))
}

/** Text that stands for itself in a pattern of Redis. */
export function escapePattern(text: string): string {
  return text.replace(/[*?[\]\\^]/g, '\\$&')
}
