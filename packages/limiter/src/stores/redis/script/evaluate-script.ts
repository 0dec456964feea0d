import { nodeCrypto } from '../../../common/node-modules.ts'
import { once } from '../../../common/once.ts'
import type { SendCommand } from '../send-command.ts'

/** A Lua script that Redis knows by its digest once it has run. */
export interface Script {
  readonly text: string
  readonly sha: string
}

export function scriptOf(text: string): Script {
  // most processes that load a script never run it
  const sha = once(() => nodeCrypto().createHash('sha1').update(text).digest('hex'))
  return {
    text,
    get sha() {
      return sha()
    },
  }
}

/** Runs a script by its digest, or by its text if Redis does not know it. */
export function evaluate(
  send: SendCommand,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  return evaluateWith(send, script, [String(keys.length), ...keys, ...args])
}

/** The same with the number of keys, the keys and the arguments in one list. */
export async function evaluateWith(
  send: SendCommand,
  { text, sha }: Script,
  rest: readonly string[],
): Promise<unknown> {
  try {
    return await send(['EVALSHA', sha, ...rest])
  } catch (error) {
    if (!String(error).includes('NOSCRIPT')) throw error
    return await send(['EVAL', text, ...rest])
  }
}
