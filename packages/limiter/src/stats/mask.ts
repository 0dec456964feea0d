import { createHmac, randomBytes } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'

/** A secret of this process only, so that a mask seen elsewhere can be compared with nothing. */
let salt: Buffer | undefined

/** Returns enough of a caller's name to distinguish callers in one process, and too little to identify them. */
export function maskCaller(name: string): string {
  if (name === '') return ''
  // not at load time: some runtimes have no random numbers before the first request
  salt ??= randomBytes(16)
  const mark = createHmac('sha256', salt).update(name, 'utf16le').digest('hex').slice(0, 6)
  if (isIPv4(name)) return `${name.split('.').slice(0, 2).join('.')}.*.* #${mark}`
  if (isIPv6(name)) return `${name.split(':').slice(0, 2).join(':')}:* #${mark}`
  const first = [...name].slice(0, name.length > 6 ? 2 : 1).join('')
  return `${first}… #${mark}`
}
