import { nodeCrypto } from '../../common/node-modules.ts'

/** No rule document, and no answer that carries one, is longer than this. */
export const LARGEST_BYTES: number = 4 * 1024 * 1024

/** Returns the error for a longer document. */
export function tooLarge(): Error {
  return new Error('holds more than 4 MiB, which no rule document needs; check what is written there')
}

/** Decodes bytes as text, or throws an error that says what is wrong. */
export function decodeText(bytes: Uint8Array): string {
  if (bytes.length > LARGEST_BYTES) throw tooLarge()
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error('holds bytes that are not UTF-8 text; write the rule document as plain text')
  }
}

/** Returns a version for content whose source gives it none. */
export function hashText(text: string): string {
  return nodeCrypto().createHash('sha256').update(text).digest('hex').slice(0, 12)
}
