import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { DianaError } from 'diana-limiter'

const shortest = 16

/** A secret as the config names it: `env:NAME`, `file:PATH`, or the secret itself. */
export function readSecret(words: string, owner: string, folder: string): Buffer {
  const secret = Buffer.from(lookUp(words, owner, folder))
  if (secret.length >= shortest) return secret
  throw new DianaError('BAD_RULES', `the secret of ${owner} has ${secret.length} bytes: use ${shortest} or more`)
}

function lookUp(words: string, owner: string, folder: string): string {
  if (words.startsWith('env:')) {
    const value = process.env[words.slice(4)]
    if (value !== undefined) return value
    throw new DianaError('BAD_RULES', `the secret of ${owner} is in ${words.slice(4)}, which is not set: set it`)
  }
  if (!words.startsWith('file:')) return words
  const path = resolve(folder, words.slice(5))
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new DianaError('BAD_RULES', `the secret of ${owner} cannot be read from ${path} (${code}): check the path`, {
      cause,
    })
  }
}
