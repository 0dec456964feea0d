// One measurement in a process of its own: node --expose-gc measure.mjs TOPIC CASE SUBJECT, or all subjects of a topic that
// measures them together: node --expose-gc measure.mjs TOPIC CASE ROUNDS
const [topic, caseName, last] = process.argv.slice(2)
const { cases, measure, measureTogether } = await import(`./topics/${topic}.mjs`)
const one = cases.find(({ name }) => name === caseName)
const result = measureTogether ? await measureTogether(one, Number(last)) : await measure(one, last)
process.stdout.write(JSON.stringify(result), () => process.exit(0))
