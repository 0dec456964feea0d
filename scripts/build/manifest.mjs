import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf } from './entries.mjs'

/** The package.json of a built package: entries are its files, and only what it loads at run time is a dependency. */
export function publishedManifest({ devDependencies: _, scripts: __, programs: ___, typesVersions: ____, files: given, ...manifest }, entries, target) {
  const names = Object.keys(entries.public)
  const hasCommonJs = existsSync(join(target, 'dist/index.cjs'))
  const exports = Object.fromEntries(
    Object.entries(manifest.exports).map(([entry, file]) => {
      const name = nameOf(entry)
      return [entry, names.includes(name) ? conditionsOf(name, hasCommonJs) : file]
    }),
  )
  const bin = manifest.bin && Object.fromEntries(Object.keys(manifest.bin).map(name => [name, './dist/diana.js']))
  const others = names.filter(name => name !== 'index')
  return {
    ...manifest,
    main: hasCommonJs ? './dist/index.cjs' : './dist/index.js',
    types: './dist/index.d.ts',
    ...(bin ? { bin } : {}),
    files: ['dist', 'THIRD-PARTY-LICENSES.txt', ...given.filter(name => !/^!|^(?:bin|dist)$/.test(name))],
    exports,
    // for TypeScript with `module: commonjs`, which does not read `exports`
    ...(others.length > 0
      ? { typesVersions: { '*': Object.fromEntries(others.map(name => [name, [`./dist/${name}.d.ts`]])) } }
      : {}),
  }
}

/** Node loads one copy, by `import` and by `require`; loaders that cannot `require` an ES module get CommonJS. */
function conditionsOf(name, hasCommonJs) {
  const module = `./dist/${name}.js`
  if (!hasCommonJs) return { types: `./dist/${name}.d.ts`, default: module }
  return {
    'module-sync': { types: `./dist/${name}.d.ts`, default: module },
    import: { types: `./dist/${name}.d.ts`, default: module },
    require: { types: `./dist/${name}.d.cts`, default: `./dist/${name}.cjs` },
  }
}
