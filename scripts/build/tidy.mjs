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
      const passed = imported.map(([, list, from]) => {
        const items = namesIn(list).map(([name, local]) =>
          names.get(local) === name ? name : `${name} as ${names.get(local)}`,
        )
        return `export { ${items.join(', ')} } from ${from};`
      })
      chunk.code = `${passed.join('\n')}\n`
    }
  },
}

function namesIn(list) {
  return list.split(', ').map(item => {
    const [name, alias = name] = item.split(' as ')
    return [name, alias]
  })
}
