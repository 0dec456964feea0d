import { readFileSync } from 'node:fs'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'

// A CommonJS program loads these packages by `require` since Node 20.19, the oldest that they run on; attw does not know it.
// JSON is read by its path in the package where `exports` is not known (node10).
const isExpected = ({ kind, entrypoint, resolutionKind }) =>
  (kind === 'CJSResolvesToESM' && resolutionKind === 'node16-cjs') ||
  (entrypoint?.endsWith('.json') && resolutionKind === 'node10')

/** What publint, attw and the list of files find wrong with a packed package; an empty list if it can be published. */
export async function checkTarball(tarball) {
  const bytes = new Uint8Array(readFileSync(tarball))
  const packed = createPackageFromTarballData(bytes)
  const root = `/node_modules/${packed.packageName}/`
  const files = packed.listFiles(root).map(path => path.slice(root.length))
  const manifest = JSON.parse(packed.readFile(`${root}package.json`))
  return [
    ...fileProblems(files, path => packed.readFile(root + path)),
    ...(await publintProblems(bytes, manifest)),
    ...(await typeProblems(packed)),
  ]
}

function fileProblems(files, read) {
  const missing = ['README.md', 'LICENSE', 'package.json'].filter(name => !files.includes(name))
  if (!files.some(path => path.startsWith('dist/'))) missing.push('dist/ (run npm run build)')
  // every package has code of others inside
  const licenses = /^(?:dist\/)?THIRD-PARTY-LICENSES\.txt$/
  if (!files.some(path => licenses.test(path))) missing.push('THIRD-PARTY-LICENSES.txt')
  const unwanted = files.filter(path => /\.test\.|\.tsbuildinfo$|(?<!\.d)\.ts$/.test(path))
  const maps = files.filter(path => path.endsWith('.map') && JSON.parse(read(path)).sourcesContent === undefined)
  const scripts = files.filter(path => path.endsWith('.js'))
  const mapless = scripts.filter(path => {
    const map = /^\/\/# sourceMappingURL=(?!data:)(\S+)\s*$/m.exec(read(path))?.[1]
    return map !== undefined && !files.includes(path.replace(/[^/]+$/, map))
  })
  return [
    ...missing.map(path => `${path} is missing`),
    ...unwanted.map(path => `${path} is not for users`),
    ...maps.map(path => `${path} names sources that are not in the package`),
    ...mapless.map(path => `${path} names a source map that is not in the package`),
  ]
}

async function publintProblems(bytes, manifest) {
  const { messages } = await publint({ pack: { tarball: bytes.buffer }, strict: true })
  return messages.map(message => `publint: ${formatMessage(message, manifest, { color: false })}`)
}

async function typeProblems(packed) {
  const { types, problems } = await checkPackage(packed)
  if (types === false) return []
  return problems
    .filter(problem => !isExpected(problem))
    .map(
      ({ kind, entrypoint, resolutionKind }) =>
        `attw: ${kind} at ${entrypoint ?? 'the package'} (${resolutionKind ?? 'any resolution'})`,
    )
}
