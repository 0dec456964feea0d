import { DianaError } from '../../errors.ts'
import { reportFailure } from './changes.ts'
import { LARGEST_BYTES, tooLarge } from './text.ts'

/** Returns the error for a document that was changed since it was read. */
export function conflict(name: string): DianaError {
  return new DianaError('CONFLICT', `${name}: was changed since it was read; read it again and repeat the change`)
}

/** Runs a write of a source so that its errors name the source and show none of its secrets. */
export async function writeGuarded(
  text: string,
  source: { readonly name: string; readonly secrets?: readonly string[] },
  write: () => Promise<string>,
): Promise<string> {
  try {
    if (Buffer.byteLength(text) > LARGEST_BYTES) throw tooLarge()
    return await write()
  } catch (cause) {
    if (cause instanceof DianaError && cause.code === 'CONFLICT') throw cause
    throw reportFailure(cause, source, 'written')
  }
}
