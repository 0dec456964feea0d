import { createHash } from 'node:crypto'
import type { SendCommand } from '../send-command.ts'

/** A Lua script that Redis knows by its digest once it has run. */
export interface Script {
  readonly text: string
  readonly sha: string
}

export function scriptOf(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** Runs a script by its digest, or by its text if Redis does not know it. */
export async function evaluate(
  send: SendCommand,
  { text, sha }: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const rest = [String(keys.length), ...keys, ...args]
  try {
    return await send(['EVALSHA', sha, ...rest])
  } catch (error) {
    if (!String(error).includes('NOSCRIPT')) throw error
    return await send(['EVAL', text, ...rest])
  }
}
