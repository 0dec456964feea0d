import { nameOf } from './entries.mjs'

/** Whether the build writes what an item of `files` names, or it names what is left out. */
export function isWritten(name) {
  return name === 'dist' || name === 'bin' || name.startsWith('!')
}

/** The package.json of a built package: entries are its files, and only what it loads at run time is a dependency. */
export function publishedManifest(
  { devDependencies: _, scripts: __, programs: ___, typesVersions: ____, bin, files, exports, ...manifest },
  entries,
) {
  const names = Object.keys(entries.public)
  const built = name => ({ types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` })
  const others = names.filter(name => name !== 'index')
  return {
    ...manifest,
    main: './dist/index.js',
    types: './dist/index.d.ts',
    ...(bin ? { bin: Object.fromEntries(Object.keys(bin).map(name => [name, './dist/diana.js'])) } : {}),
    files: ['dist', 'THIRD-PARTY-LICENSES.txt', ...files.filter(name => !isWritten(name))],
    exports: Object.fromEntries(
      Object.entries(exports).map(([entry, file]) => {
        const name = nameOf(entry)
        return [entry, names.includes(name) ? built(name) : file]
      }),
    ),
    // for TypeScript with `module: commonjs`, which does not read `exports`
    ...(others.length > 0 ? { typesVersions: { '*': { 'dist/*': ['./dist/*'], '*': ['./dist/*.d.ts'] } } } : {}),
  }
}
