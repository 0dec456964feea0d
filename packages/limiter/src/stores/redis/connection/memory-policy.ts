import { warnOnce } from '../../../common/warn-once.ts'
import type { SendCommand } from '../send-command.ts'

/**
 * Warns once if Redis may evict keys when its memory is full. All keys of Diana expire, so that policies for keys that
 * expire evict them too. INFO works for users that may not read the configuration; a user without both permissions gets no warning.
 */
export async function warnOfEviction(send: SendCommand): Promise<void> {
  const info = await send(['INFO', 'memory']).catch(() => '')
  const policy = /^maxmemory_policy:(\S+)/m.exec(String(info))?.[1]
  if (policy === undefined || policy === 'noeviction') return
  const most = /^maxmemory_human:(\S+)/m.exec(String(info))?.[1]
  warnOnce('DIANA_STORE_EVICTS', `maxmemory-policy is ${policy}, maxmemory ${most ?? 'not known'}`)
}
