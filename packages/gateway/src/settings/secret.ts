import { resolve } from 'node:path'
import { DianaError } from 'diana-limiter'
import { fileFault, readRegularFileSync } from 'diana-limiter/gateway'

const shortest = 16

/** Returns a secret as the config names it: `env:NAME`, `file:PATH`, or the secret itself. */
export function readSecret(words: string, owner: string, folder: string): Buffer {
  const secret = Buffer.from(findSecret(words, owner, folder))
  if (secret.length >= shortest) return secret
  throw new DianaError('BAD_RULES', `the secret of ${owner} has ${secret.length} bytes: use ${shortest} or more`)
}

/** Reads a secret of any length. */
export function findSecret(words: string, owner: string, folder: string): string {
  if (words.startsWith('env:')) {
    const value = process.env[words.slice(4)]
    if (value !== undefined) return value
    throw new DianaError('BAD_RULES', `the secret of ${owner} is in ${words.slice(4)}, which is not set: set it`)
  }
  if (!words.startsWith('file:')) return words
  const path = resolve(folder, words.slice(5))
  try {
    return readRegularFileSync(path)
      .toString()
      .replace(/\r?\n$/, '')
  } catch (cause) {
    const what = `the secret of ${owner} cannot be read from ${path} (${fileFault(cause)}): check the path`
    throw new DianaError('BAD_RULES', what, { cause })
  }
}
