import fc from 'fast-check'
import { resources } from './services.ts'

/** Spellings that have been a way around a rule somewhere, before or behind Diana. */
export const knownTargets: readonly string[] = [
  ...resources,
  '/a%5Cb%2F..%2Fhello',
  '/x%2F..;%2F..%2F..%2Fhello',
  '/x%2F..%2Fhello',
  '/a%5Cb/%2e%2e\\hello#',
  '/x/..%2Fhello',
  '/x%5C..%5Chello',
  '/x\\..\\hello',
  '/x\\..\\hello#',
  '/x\\..\\hello?#',
  '/R/..\\dir\\x/../deep/file#',
  '/%2Fhello',
  '/hello%2F',
  '/hello%2F.',
  '/;x/hello',
  '/;x%2Fhello',
  '/hello;x%2Fy',
  '/hello%3Bx',
  '/admin%2Fsecret',
  '/admin%5Csecret',
  '/admin;x/secret',
  '/admin;x%2Fsecret',
  '/admin/..;/hello',
  '/hello/..%2Fadmin%2Fsecret',
  '/hello/..%5Cadmin%5Csecret',
  '/dir%2fdeep%2ffile',
  '/dir/x/%2e%2e%2fdeep/file',
  '/dir//deep//file',
  '/dir/./deep/./file',
  '/DIR/Deep/FILE',
  '/%61dmin/secret',
  '/%2561dmin/secret',
  '/admin%252Fsecret',
  'http://b/admin/secret',
  'http://b;c/../hello',
  'http://b\\admin/secret',
  'http://u@b%2fhello?',
  'http://b%61dmin/secret',
  'http://x%61dmin/../hello',
  'abcdefgh://b/hello',
  'abcdefgh://b/a\\b/../admin/secret',
  '/admin//../secret',
  '/admin%2f.%2E/hello\\',
  '/admin%2F..%2Fdir%2Fdeep/./hello',
  '/x//../hello',
  'http://b/x\\..\\hello',
  'http://b%2Fadmin/../hello',
  'http://b?/../hello',
  '/hello?/../admin/secret',
  '/hello#/../admin/secret',
  '/admin/secret;',
  '/admin/.%2e/hello',
  '/..%2f..%2fhello',
  '/admin/%00/../../hello',
  '/dir/deep/file/%2e',
  '/dir/deep;a=b;c/file;d',
  '/hello;x/y',
  '/hello;/b',
  '/hello%3Ba/b',
  '/admin/secret;x/../../hello',
  'javascript://hello',
  'javascript://admin/secret',
  'JavaScript://u@dir/deep/file',
]

const slashes = ['/', '/', '/', '//', '/./', '%2F', '%2f', '\\', '%5C', '%5c', ';/', ';x/', '%3B/', '/;x/', '%2F;%2F']
const ups = ['..', '..', '%2e%2e', '.%2E', '..;', '..;x', '..%3B']
const words = [
  'x',
  'hello',
  'admin',
  'dir',
  'deep',
  'y;z',
  'a%5Cb',
  'a%2Fb',
  'a\\b',
  'a;b%2Fc',
  '%2F',
  '%5C',
  ';',
  '.',
  '',
]
const ends = [
  '',
  '',
  '',
  '',
  '',
  '/',
  '%2F',
  '/.',
  ';',
  ';x',
  '%3Bx',
  '#',
  '#/../x',
  '?',
  '?x=1',
  '?#',
  '\\',
  '/x/..',
  '%2Fx%2F..',
]
const starts = [
  '',
  '',
  '',
  '',
  '',
  '',
  'http://b',
  'HTTP://b:1',
  'http://b;c',
  'http://b%2Fc',
  'http://u@b',
  'http://b%61dmin',
  'http://b;c@d',
  'abcdefgh://b',
  'x',
]

const slash = fc.constantFrom(...slashes)

/** A letter as it is, escaped, or in the other case. */
const spellLetters = (text: string): fc.Arbitrary<string> =>
  fc
    .array(fc.integer({ min: 0, max: 19 }), { minLength: text.length, maxLength: text.length })
    .map(choices => [...text].map((letter, at) => spell(letter, choices[at]!)).join(''))

function spell(letter: string, choice: number): string {
  if (letter === ' ') return choice === 1 ? '+' : '%20'
  if (letter > '~') return spellUnusual(letter, choice)
  if (choice === 0) return escaped(letter)
  // the Kelvin sign is a k in lower case, and a long s an S in upper case
  if (choice === 2 && letter === 'k') return '%E2%84%AA'
  if (choice === 2 && letter === 's') return '%C5%BF'
  return choice === 1 ? letter.toUpperCase() : letter
}

/** A letter beyond ASCII is sent in escapes, but Node also takes the bytes themselves, of UTF-8 or of Latin-1. */
function spellUnusual(letter: string, choice: number): string {
  if (choice === 0) return Buffer.from(letter).toString('latin1')
  if (choice === 1) return escaped(letter.toUpperCase())
  if (choice === 2) return letter.codePointAt(0)! < 0x100 ? letter : escaped(letter)
  return choice === 3 ? escaped(letter).toLowerCase() : escaped(letter)
}

function escaped(text: string): string {
  return [...Buffer.from(text)].map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}

/** Somewhere and back: `x/../`, with each part spelled in any way. */
const detour = fc.tuple(fc.constantFrom(...words), slash, fc.constantFrom(...ups), slash).map(parts => parts.join(''))

const pathTo = (paths: readonly string[]): fc.Arbitrary<string> =>
  fc.constantFrom(...paths).chain(path => {
    const segments = path.slice(1).split('/')
    const pieces = segments.flatMap(segment => [
      slash,
      fc.array(detour, { maxLength: 2 }).map(detours => detours.join('')),
      spellLetters(segment),
    ])
    return fc.tuple(...pieces).map(parts => parts.join(''))
  })

/** Nothing but letters in other spellings and a few ends: most of these are served. */
const lettersOf = (paths: readonly string[]): fc.Arbitrary<string> =>
  fc.constantFrom(...paths).chain(path => {
    const segments = path.slice(1).split('/')
    return fc.tuple(...segments.map(spellLetters)).map(parts => `/${parts.join('/')}`)
  })

const soup = fc
  .array(fc.constantFrom(...slashes, ...ups, ...words, 'secret', 'file'), { maxLength: 10 })
  .map(parts => `/${parts.join('')}`)

/** Targets that lead to a resource by some reading, and targets that lead anywhere. */
const targetOf = (paths: readonly string[]): fc.Arbitrary<string> => {
  const path = fc.oneof(
    { weight: 4, arbitrary: pathTo(paths) },
    { weight: 1, arbitrary: soup },
    { weight: 3, arbitrary: lettersOf(paths) },
  )
  return fc.tuple(fc.constantFrom(...starts), path, fc.constantFrom(...ends)).map(parts => parts.join(''))
}

export function randomTargets(count: number, seed: number, paths: readonly string[] = resources): string[] {
  return fc.sample(targetOf(paths), { numRuns: count, seed })
}
