/* Carries out the LuCI page with stand-ins for LuCI's modules: node luci.js VIEW STATUS KILLED. Prints, as JSON, what
 * it shows before and after a press of its button, and what it asked of ubus. Elements are plain objects. */
'use strict';
const fs = require('fs');

const [ file, status, killed ] = process.argv.slice(2);
const asked = [];
let state = killed === 'true';

String.prototype.format = function(...values) {
	return this.replace(/%s/g, () => values.shift());
};

const E = (tag, attributes, children) => ({
	tag, attributes, children: [].concat(children),
	replaceChildren(...others) { this.children = others; }
});

const rpc = {
	declare: d => (...args) => {
		asked.push([ d.object, d.method, ...args ]);
		if (d.method !== 'kill')
			return status === 'none' ? Promise.reject(new Error('no object'))
				: Promise.resolve(JSON.parse(fs.readFileSync(status)));
		if (args.length)
			state = args[0];
		return Promise.resolve({ killed: state });
	}
};

function text(node) {
	return typeof node === 'string' ? node : node.children.map(text).join(node.tag === 'tr' ? ' | ' : '\n');
}

function button(node) {
	return typeof node === 'string' ? null
		: node.tag === 'button' ? node : node.children.map(button).find(found => found) || null;
}

const source = fs.readFileSync(file, 'utf8');
const polled = [];
const page = new Function('view', 'poll', 'rpc', 'ui', 'E', '_', source)(
	{ extend: methods => methods }, { add: (what, seconds) => polled.push(seconds) }, rpc,
	{ createHandlerFn: (self, handler) => handler }, E, words => words
);

(async () => {
	const shown = page.render(await page.load());
	const before = text(shown), press = button(shown);

	if (press)
		await press.attributes.click();
	console.log(JSON.stringify({ before, after: text(shown), asked, polled }));
})();
