import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

// How many of the words below each file may still have. A file with more fails. After words were removed,
// `UPDATE_WORDS=1 npx vitest run test/plain-words.test.ts` writes the lower counts. A merge of branches that were written
// before this test may need UPDATE_WORDS=merge, which writes higher ones, too.

const root = fileURLToPath(new URL('..', import.meta.url))
const listPath = join(root, 'test/plain-words.json')

/** Words that a reader meets rarely, words for Diana or people as a man or a woman, and British spellings. */
const unwanted = [
  ...['whoever', 'whomever', 'whom', 'whosoever', 'lest', 'anew', 'afresh', 'nobody', 'somebody', 'thereof', 'therein'],
  ...[
    'wherein',
    'whereof',
    'whence',
    'hence',
    'thence',
    'thereby',
    'hereby',
    'henceforth',
    'albeit',
    'seldom',
    'betimes',
  ],
  ...['she', 'her', 'hers', 'herself', 'he', 'him', 'his', 'himself'],
  ...['tell', 'tells', 'told', 'telling', 'dearer', 'for ever', "one's own", 'one’s own', 'of its own accord'],
  ...[
    'normalise',
    'normalised',
    'normalises',
    'centre',
    'centres',
    'colour',
    'colours',
    'behaviour',
    'favour',
    'honour',
  ],
]
const pattern = new RegExp(`(?<![\\w'’-])(?:${unwanted.join('|')})(?![\\w'’-])`, 'gi')

/** Files that quote these words: this test, its list, other people's texts, what commands write, and Chinese. */
const left =
  /^test\/plain-words|package-lock\.json$|^LICENSE|\.zh-CN\.md$|\/zh\.ts$|diana\.schema\.json$|\.snap$|^test\/api\//

function countWords(text: string): number {
  return text.match(pattern)?.length ?? 0
}

function countFiles(): Record<string, number> {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: root })
  const files = listed.toString().split('\0').sort()
  const read = (file: string): string => {
    try {
      return readFileSync(join(root, file), 'utf8')
    } catch {
      return '' // deleted, and not committed yet
    }
  }
  const texts = files.filter(file => /\.(?:ts|tsx|mts|mjs|lua|md|ya?ml|json|html)$/.test(file) && !left.test(file))
  return Object.fromEntries(texts.map(file => [file, countWords(read(file))] as const).filter(([, count]) => count > 0))
}

function writeCounts(counts: Record<string, number>): void {
  writeFileSync(listPath, `${JSON.stringify(counts, null, 2)}\n`)
}

it('the counter finds whole words in any case and leaves parts of words alone', () => {
  expect(countWords('Whoever she told: HIS own. lest')).toBe(5)
  expect(countWords('the shell, other, this, there, he-man, told-you, tolder, restated, center')).toBe(0)
  expect(countWords("one's own words, for ever")).toBe(2)
})

it('no file has more of the words that this test lists than before: write plainer ones', () => {
  const allowed = JSON.parse(readFileSync(listPath, 'utf8')) as Record<string, number>
  const counts = countFiles()
  // a file that was moved takes its allowance with it, so a new name is compared with the files that are gone
  const gone = Object.keys(allowed).filter(file => !(file in counts))
  const spare = gone.map(file => allowed[file]!)
  const grown = Object.entries(counts).filter(([file, count]) => {
    if (file in allowed) return count > allowed[file]!
    const at = spare.findIndex(allowance => allowance >= count)
    if (at >= 0) spare.splice(at, 1)
    return at < 0
  })
  if (process.env.UPDATE_WORDS === 'merge') return writeCounts(counts)
  expect(grown.map(([file, count]) => `${file}: ${count}, allowed ${allowed[file] ?? 0}`)).toEqual([])
  if (process.env.UPDATE_WORDS) writeCounts(counts)
})
