/** Leaves out imports of the bundler's runtime that use nothing of it. */
export const withoutRuntime = {
  name: 'without-runtime',
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk') continue
      if (/rolldown-runtime.*\.d\.ts$/.test(chunk.fileName)) delete bundle[chunk.fileName]
      else chunk.code = chunk.code.replace(/^import "[^"]*rolldown-runtime[^"]*";\n/m, '')
    }
  },
}

const importLine = /^import \{ ([^}]*) \} from ("\.\/[^"]+");$/
const exportLine = /^export \{ ([^}]*) \};$/

/** Writes `export { a } from './b.js'` in files that only pass on what others export, so that bundlers need not read those that are not used. */
export const passOn = {
  name: 'pass-on',
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk') continue
      const lines = chunk.code.split('\n').filter(line => line.trim() !== '')
      const exported = exportLine.exec(lines.at(-1) ?? '')
      const imported = lines.slice(0, -1).map(line => importLine.exec(line))
      if (!exported || imported.length === 0 || imported.includes(null)) continue
      const names = new Map(namesIn(exported[1]))
      const passed = imported.flatMap(([, list, from]) => {
        const given = namesIn(list).filter(([, local]) => names.has(local))
        const items = given.map(([name, local]) =>
          names.get(local) === name ? name : `${name} as ${names.get(local)}`,
        )
        return items.length === 0 ? [] : [`export { ${items.join(', ')} } from ${from};`]
      })
      chunk.code = `${passed.join('\n')}\n`
    }
  },
}

const passedLine = /^export \{ ([^}]*) \} from ("\.\/[^"]+");\n$/

/** Loads what a file passes on from where it is, if only `import()` names that file: it is not needed then. */
export const loadDirectly = {
  name: 'load-directly',
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).filter(({ type }) => type === 'chunk')
    for (const { fileName, isEntry, code } of chunks) {
      const passed = passedLine.exec(code)
      if (isEntry || passed === null || chunks.some(({ imports }) => imports.includes(fileName))) continue
      const names = namesIn(passed[1])
      const given = names.map(([name, alias]) => (name === alias ? name : `${name}: ${alias}`)).join(', ')
      const made = names.map(([, alias]) => alias).join(', ')
      const direct = `import(${passed[2]}).then(({ ${given} }) => ({ ${made} }))`
      for (const chunk of chunks) chunk.code = chunk.code.replaceAll(`import("./${fileName}")`, direct)
      delete bundle[fileName]
    }
  },
}

function namesIn(list) {
  return list.split(', ').map(item => {
    const [name, alias = name] = item.split(' as ')
    return [name, alias]
  })
}

/** Leaves out the path of each source: paths would take as much space as a small library. */
export const withoutPaths = {
  name: 'without-paths',
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type === 'chunk') chunk.code = chunk.code.replace(/^\/\/ (?:packages|node_modules)\/\S+\n/gm, '')
    }
  },
}
